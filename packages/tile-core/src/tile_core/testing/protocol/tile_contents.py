"""What the parts of a tile hold."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.testing.protocol.events import Box, Content, ExpectedContent, covers, overlaps


def put(parts: list[tuple[Box, Content]], box: Box, content: Content) -> None:
    """Let a box of a tile have other contents."""
    parts[:] = [part for part in parts if not covers(box, part[0])]
    parts.append((box, content))


def held_in(parts: Sequence[tuple[Box, Content]], box: Box) -> ExpectedContent:
    """Return what is in a box of a tile."""
    inside = [part for part in parts if overlaps(part[0], box)]
    size = sum(_volume(_common(part[0], box)) for part in inside)
    return ExpectedContent(frozenset(content for _, content in inside), size >= _volume(box))


def _common(a: Box, b: Box) -> Box:
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _volume(box: Box) -> int:
    size = 1
    for first, last in box:
        size *= last - first
    return size
