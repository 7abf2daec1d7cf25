"""Arguments that calls pass by name, put in the order of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def in_order(
    kernel: str,
    names: Sequence[str],
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    refused: Callable[..., Exception],
) -> tuple[Any, ...]:
    """Return the arguments of a call in the order of the parameters that it passes.

    The names leave out what is returned; ``refused(message, hint=)`` makes the error.

    Raises
    ------
    Exception
        What `refused` makes: if there is no such parameter, if one is passed twice or not at all.

    Examples
    --------
    >>> in_order("scale", ["A", "x"], (1,), {"x": 2}, ValueError)
    (1, 2)
    """
    whole = f"{kernel}({', '.join(names)})"
    for name in named:
        if name not in names:
            raise refused(
                f"{whole} takes no argument {name!r}",
                hint=f"pass {', '.join(names) or 'nothing'}: outputs are returned, not passed",
            )
    twice = [name for name in names[: len(args)] if name in named]
    if twice:
        raise refused(
            f"{whole} got {twice[0]} twice: by position and by name",
            hint=f"leave out {twice[0]}=, or what is passed by position in its place",
        )
    rest = names[len(args) :]
    missing = [name for name in rest if name not in named]
    if missing:
        raise refused(
            f"{whole} got no {missing[0]}", hint="pass every parameter, by position or by name"
        )
    return (*args, *[named[name] for name in rest])
