"""The compiler behind the tile language: IR, operators, passes, plugin host."""

from importlib import import_module

__author__ = "The tile authors"
__version__ = "0.1.0"


def verify_companion(package: str, version: str) -> None:
    """Import a package of this project, and check that it is ours and of a version.

    Each of our packages states in its own ``__init__`` who wrote it and which version it is, so
    that this compares two constants; `tile_core.companions` tells what was found instead.

    Raises
    ------
    CompanionError
        If the package is somebody else's or of another version, or if the distribution that
        should bring it does not.
    ImportError
        Whatever importing it raises otherwise.
    """
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        module = None
    stated = (getattr(module, "__author__", None), getattr(module, "__version__", None))
    if stated != (__author__, version):
        from tile_core.companions import mismatch

        told, hint = mismatch(package, version, module, __author__, __version__)
        try:
            from tile_core.errors import CompanionError
        except ImportError:  # it descends from a class of the launcher, which is not ours
            raise ImportError(f"[TL7004] {told}\nhint: {hint}") from None
        raise CompanionError(told, hint=hint)
