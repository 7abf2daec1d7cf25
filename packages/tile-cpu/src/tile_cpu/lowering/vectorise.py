"""x"""


def vectorised(ctx, stmt):
    return None
