"""Torch's compiler goes around what is in these packages.

Dynamo follows Python code into every function that it is not told to leave alone. Of a call of a
kernel it would make graphs of thousands of frames that check arguments or compile, in a minute or
more, of which none has anything to do with tensors. A call is a break between two graphs instead;
within a graph a kernel is an operator, as `as_torch_op` makes it. The modules of tile-nn choose
operators by themselves, and the alias of TileLang has functions of torch on its own: those are
followed.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

from tile_launch.import_hooks import when_imported

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGES = tuple(f"tile_{part}" for part in ("api", "core", "cpu", "cuda", "hip", "launch", "sim"))
_FOLLOWED = "tilelang"
_RULES = "torch._dynamo.trace_rules"
_FRAMES = "torch._dynamo.eval_frame"


def leave_alone() -> None:
    """Have torch's compiler leave these packages alone, now or once it is loaded."""
    when_imported(_RULES, _skip)


def outside_of_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate what compiles: torch's compiler follows nothing that is called there.

    What `leave_alone` says holds for frames of these packages; functions of users that are read
    here, and other packages, are called by them.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        follow = getattr(sys.modules.get(_FRAMES), "set_eval_frame", None)
        if follow is None:
            return function(*args, **kwargs)
        before = follow(None)
        try:
            return function(*args, **kwargs)
        finally:
            follow(before)

    return called


def between_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate what calls a kernel: where a graph must not break there, torch says why it does."""
    named: Any = function
    named._torchdynamo_disable = True
    named._torchdynamo_disable_msg = (
        "a kernel is called between graphs; in a graph it is an operator, which "
        "kernel.as_torch_op('mylib::name') makes of it"
    )
    return function


def _skip() -> None:
    rules = sys.modules[_RULES]
    places, read_again = getattr(rules, "SKIP_DIRS", None), getattr(rules, "_recompile_re", None)
    if places is not None and read_again is not None:  # which torch does not promise
        places.extend(place for package in _PACKAGES for place in _places(package))
        read_again()


def _places(package: str) -> list[str]:
    """Return the files and folders of a package, but for what stands in for functions of torch."""
    found = find_spec(package)
    folder = os.path.dirname((found and found.origin) or "")
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in os.listdir(folder) if name != _FOLLOWED]
