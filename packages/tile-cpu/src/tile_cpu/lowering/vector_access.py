"""x"""


def vector_load(ctx, expr):
    return None
