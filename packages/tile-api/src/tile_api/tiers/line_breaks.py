"""Long lines of printed programs, broken within brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

WIDTH = 100
PAD = "    "

_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|.""", re.DOTALL)
_PIECE = re.compile(rf"[()\[\]{{}}]|[^()\[\]{{}}\"']+|{_TOKEN.pattern}", re.DOTALL)
_OPENING, _CLOSING = (*"([{",), (*")]}",)
_OPERATORS = (" if ", " else ", " or ", " and ", " | ", " ^ ", " & ", " + ", " - ", " * ", " / ")
"""Where lines may end within brackets; what binds least comes first."""


def broken(text: str, depth: int) -> list[str]:
    """Return a statement on as many lines as it needs, `depth` steps to the right.

    Before   x = T.max(first, second)
    After    x = T.max(
                 first,
                 second,
             )
    """
    line = f"{PAD * depth}{text}"
    if len(line) <= WIDTH:
        return [line]
    return _in_brackets(_with_brackets(text), depth)


_ASSIGNED = re.compile(r"[^=]*[^=!<>] = ")
_TESTED = re.compile(r"(if|elif|while) (.*):", re.DOTALL)


def _with_brackets(text: str) -> str:
    """Put what is computed between brackets, if lines are to end at its operators."""
    tested = _TESTED.fullmatch(text)
    if tested is not None and _is_long_sum(tested[2]):
        return f"{tested[1]} ({tested[2]}):"
    assigned = _ASSIGNED.match(text)
    if assigned is not None and _is_long_sum(text[assigned.end() :]):
        return f"{assigned[0]}({text[assigned.end() :]})"
    return text


def _is_long_sum(text: str) -> bool:
    return any(len(_parts(text, operator)) > 1 for operator in _OPERATORS)


def _in_brackets(text: str, depth: int) -> list[str]:
    """Break lines within the brackets that hold most."""
    found = _widest_brackets(text)
    if found is None:
        return [f"{PAD * depth}{text}"]
    start, end = found
    inside, is_call = text[start + 1 : end], bool(_CALLED.search(text[: start + 1]))
    items = _parts(inside, ", ")
    comma = "," if len(items) > 1 or is_call or inside.endswith(",") else ""
    lines = [f"{PAD * depth}{text[: start + 1]}"]
    for item in items:
        lines += _item(f"{item.removesuffix(',')}{comma}", depth + 1)
    lines.append(f"{PAD * depth}{text[end:]}")
    return lines


_CALLED = re.compile(r"\w\($")


def _item(text: str, depth: int) -> list[str]:
    """Return one operand within brackets, where lines may end at operators, too."""
    if len(PAD) * depth + len(text) <= WIDTH:
        return [f"{PAD * depth}{text}"]
    return _at_operators(text, depth) if _is_long_sum(text) else _in_brackets(text, depth)


def _at_operators(text: str, depth: int) -> list[str]:
    """End lines in front of the operators that bind least."""
    operator = next(o for o in _OPERATORS if len(_parts(text, o)) > 1)
    first, *rest = _parts(text, operator)
    lines = _item(first, depth)
    for part in rest:
        piece = f"{operator[1:]}{part}"
        joined = f"{lines[-1]} {piece}"
        lines[-1:] = [joined] if len(joined) <= WIDTH else [lines[-1], *_item(piece, depth)]
    return lines


def _levels(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the position of each character outside of strings, and how deep in brackets it is."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth -= token in ")]}"
        yield match.start(), token, depth
        depth += token in "([{"


def _widest_brackets(text: str) -> tuple[int, int] | None:
    """Return where those outermost brackets open and close that hold most; None without any."""
    opened, found, most = 0, None, 0
    for at, token, depth in _levels(text):
        if depth == 0 and token in ("(", "[", "{"):
            opened = at
        elif depth == 0 and token in (")", "]", "}") and at - opened - 1 > most:
            found, most = (opened, at), at - opened - 1
    return found


def _parts(text: str, separator: str) -> list[str]:
    """Return text cut at a separator that is in no brackets and no string."""
    outside, starts, cut = _outside(text), [0], -1
    cuts: list[int] = []
    while (cut := outside.find(separator, cut + 1)) >= 0:
        cuts.append(cut)
        starts.append(cut + len(separator))
    return [text[a:b] for a, b in zip(starts, [*cuts, len(text)], strict=True)]


@lru_cache(maxsize=64)
def _outside(text: str) -> str:
    """Return text with zeros, which no separator has, for what is in brackets and strings."""
    depth, pieces = 0, []
    for token in _PIECE.findall(text):
        depth -= token in _CLOSING
        is_outside = depth == 0 and token[0] not in "\"'"
        pieces.append(token if is_outside else "\0" * len(token))
        depth += token in _OPENING
    return "".join(pieces)
