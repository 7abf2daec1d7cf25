"""The library made of ``caller.c``: compiled once for a machine, checked, and kept on disk."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from tile_launch.checksums import append_checksum, is_whole

SOURCE = Path(__file__).parent / "caller.c"
FLAGS = ("-O2", "-shared", "-fPIC")
_COMPILERS = ("cc", "gcc", "clang")


def is_supported() -> bool:
    """Whether the C text fits this interpreter: CPython of 64 bits with its lock, on Linux."""
    return (
        sys.implementation.name == "cpython"
        and sys.platform == "linux"
        and sys.byteorder == "little"  # narrow numbers are passed as the first bytes of wide ones
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and "t" not in sys.abiflags  # threads without a lock
        and not hasattr(sys, "getobjects")  # objects begin with lists of all objects
    )


def c_compiler() -> list[str]:
    """Return the command of a C compiler, ``$CC`` first; one that does not exist if none does."""
    from shlex import split  # compiled text is there but for the first time

    with suppress(ValueError):  # quotes that do not end
        chosen = split(os.environ.get("CC", ""))
        if chosen and shutil.which(chosen[0]):
            return chosen
    for name in _COMPILERS:
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return ["cc"]


@cache
def file_name() -> str:
    """Return what the library is called: its text, and what CPython calls its own libraries.

    Those names tell the version of Python, the processor and the library of C.
    """
    texts = (path.read_bytes() for path in sorted(SOURCE.parent.glob("*.[ch]")))
    digest = hashlib.sha256(b"\0".join((*map(str.encode, FLAGS), *texts))).hexdigest()[:16]
    return f"caller-{digest}{EXTENSION_SUFFIXES[0]}"


def ready_library(folder: Path, compiler: Sequence[str]) -> Any:
    """Return the library, kept in `folder` from its first use on; None if it cannot be made.

    A file that is damaged is made anew.
    """
    if not is_supported():
        return None
    path = build_library(folder, compiler)
    if path is not None and not is_whole(path):
        with suppress(OSError):
            path.unlink()
        path = build_library(folder, compiler)
    return None if path is None else open_library(path)


def build_library(folder: Path, compiler: Sequence[str]) -> Path | None:
    """Return the path of the library in `folder`, compiled if it is not there; None if it cannot.

    Several processes may do so at once: it gets its name when it is complete.
    """
    aside = folder / f"{os.urandom(8).hex()}.aside"
    target = folder / file_name()
    if os.path.exists(target):  # which finds names that are too long nowhere
        return target
    import subprocess  # takes a while, and is needed once on a machine

    try:
        folder.mkdir(parents=True, exist_ok=True)
        command = [*compiler, *FLAGS, "-o", os.fspath(aside), os.fspath(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        append_checksum(aside)
        aside.replace(target)
    except (OSError, subprocess.SubprocessError):
        with suppress(OSError):
            aside.unlink()
        return None
    return target


def open_library(path: Path) -> Any:
    """Return the library, or None if it cannot be used with this Python and NumPy.

    Its view of objects and arrays is compared with Python's.
    """
    library = _loaded(path) if is_whole(path) else None
    if library is None or not _sees_objects(library) or not _sees_arrays(library):
        return None
    return library


def _loaded(path: Path) -> Any:
    """Return what is in a file, or None if that is not our library."""
    try:
        library = ctypes.PyDLL(os.fspath(path))
        _declare(library)
    except (OSError, AttributeError):
        return None
    return library


def _declare(library: Any) -> None:
    address, place = ctypes.c_void_p, ctypes.py_object
    library.tile_type_of.argtypes, library.tile_type_of.restype = (place,), address
    library.tile_fields_of.argtypes, library.tile_fields_of.restype = (place, address), None
    library.tile_caller.argtypes = (address, ctypes.c_int32, address)
    library.tile_caller.restype = place
    library.tile_remember.argtypes = (place, address, address, ctypes.c_int32, address)
    library.tile_remember.restype = ctypes.c_int32
    library.tile_forget.argtypes, library.tile_forget.restype = (place,), None


def _sees_objects(library: Any) -> bool:
    samples: tuple[object, ...] = (1, 1.5, None, object())
    return all(library.tile_type_of(sample) == id(type(sample)) for sample in samples)


def _sees_arrays(library: Any) -> bool:
    import numpy as np

    for array in (np.zeros((3, 2), np.float32)[:, ::2], np.arange(4)[1:]):
        found = (ctypes.c_int64 * 6)()
        library.tile_fields_of(array, found)
        address = array.__array_interface__["data"][0]
        facts = [address, array.ndim, array.shape[0], array.strides[0], id(array.dtype)]
        if [*found] != [*facts, array.flags.num]:
            return False
    return True


_TRUE = frozenset({"1", "true", "yes", "on"})


@cache
def installed_library() -> Any:
    """Return the library, compiled on first use; None if there is none.

    It is kept in the folder of caches. Without a C compiler, or where nothing is kept on disk,
    Python makes the calls.
    """
    folder = library_folder(os.environ)
    return None if folder is None else ready_library(folder, c_compiler())


def library_folder(environment: Mapping[str, str]) -> Path | None:
    """Return where the library is kept: beside the kernels that compilers keep, if there are any.

    None if nothing is to be kept (``TILE_DISABLE_CACHE=1``, ``TILE_CACHE_SIZE=0``), or nobody
    says where.

    Examples
    --------
    >>> str(library_folder({"TILE_CACHE_DIR": "/var/cache/tile"}))
    '/var/cache/tile/native'
    >>> library_folder({"TILE_DISABLE_CACHE": "1"}) is None
    True
    """
    get = environment.get
    disabled = get("TILE_DISABLE_CACHE") or get("TILELANG_DISABLE_CACHE") or ""
    if disabled.strip().lower() in _TRUE or (get("TILE_CACHE_SIZE") or "").strip() == "0":
        return None
    try:
        if chosen := get("TILE_CACHE_DIR") or get("TILELANG_CACHE_DIR"):
            return Path(chosen).expanduser() / "native"
        base = get("XDG_CACHE_HOME", "")
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:  # this user has no home
        return None
    return root / "tile" / "native"
