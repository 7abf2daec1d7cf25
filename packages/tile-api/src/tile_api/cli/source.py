"""``tile source``: print a function or a kernel of a file as a program of a lower tier."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tile_api.cli.kernels import add_kernel, arguments_in, is_function, kernel_in, traced
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError, FrontendValueError

TIERS = ("developer", "expert")


@dataclass(frozen=True)
class Like:
    """An argument without elements."""

    shape: tuple[int, ...]
    dtype: DType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Print a @tile.function, a @T.prim_func, or what a @tile.jit function makes, as a program "
        "that runs as a file: kernels of tiles, or what one thread of a GPU does, which need not "
        "be here."
    )
    add_kernel(parser)
    parser.add_argument(
        "--tier", choices=TIERS, default=TIERS[0], help="of the program that is printed (developer)"
    )
    parser.add_argument(
        "--like",
        action="append",
        default=[],
        metavar="ARRAY",
        help="shape and type of an argument of a @tile.function, such as q=4x1024x64:float16; can "
        "be given several times",
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    from tile_api.lowering import lower

    found, given = kernel_in(args.place, functions=True), arguments_in(args.args)
    if is_function(found):
        function = found.on(args.target) if args.target else found
        like = arrays_like(args.like)
        require_arguments(function, (*like, *given))
        text = function.source(**like, **given, tier=args.tier)
    elif args.like:
        raise FrontendValueError(
            "--like is for functions of whole arrays", hint="leave it out: kernels have shapes"
        )
    else:
        options: Mapping[str, Any] = found.options if hasattr(found, "get_tir") else {}
        target = args.target or options.get("target")
        kernel = lower(traced(found, given), target, out_idx=options.get("out_idx"))
        text = kernel.source(tier=args.tier)
    sys.stdout.write(text)
    return 0


def require_arguments(function: Any, names: Collection[str]) -> None:
    """Refuse a command line that leaves out arguments of a function of arrays.

    Raises
    ------
    FrontendValueError
        If a parameter without a default has no name among these, or a name is no parameter.
    """
    parameters = inspect.signature(function.func).parameters
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in names]
    unknown = [name for name in names if name not in parameters]
    told = f"{function.__name__} takes {', '.join(parameters) or 'nothing'}"
    if unknown:
        raise FrontendValueError(
            f"{told}: there is no {unknown[0]}", hint=f"leave {unknown[0]} out"
        )
    if missing:
        name = missing[0]
        raise FrontendValueError(
            f"{told}: {name} is not given",
            hint=f"write --like {name}=4x1024:float16 for an array, "
            f"""--args '{{"{name}": 2}}' for anything else""",
        )


_LIKE = re.compile(r"(\w+)=(\d+(?:x\d+)*)?(?::(\w+))?")


def arrays_like(texts: Iterable[str]) -> dict[str, Like]:
    """Return arguments by name.

    Raises
    ------
    FrontendValueError
        If a text is no name, shape and type.

    Examples
    --------
    >>> arrays_like(["q=4x64:float16", "scale="])["q"].shape
    (4, 64)
    """
    found = {}
    for text in texts:
        match = _LIKE.fullmatch(text)
        if match is None:
            raise FrontendValueError(
                f"--like {text} is no name with a shape and a type",
                hint="write --like q=4x1024x64:float16; without a type it is float32",
            )
        name, shape, dtype = match.groups()
        try:
            kind = dtype_of(dtype or "float32")
        except FrontendTypeError as error:
            raise FrontendValueError(
                f"--like {text} names no type of elements: {error.message}", hint=error.hint
            ) from None
        found[name] = Like(tuple(map(int, shape.split("x"))) if shape else (), kind)
    return found
