"""Kinds of environment variables: how the text of one is read, and what it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from tile_core.records import dataclass

V = TypeVar("V")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Domain:
    """How text becomes a value."""

    name: str  # in tables: ``flag``, ``number``
    allowed: str  # what may stand there; goes on after "set it to"
    read: Callable[[str], Any]  # of a text that is not empty, or raises `ValueError`


def read_by(parse: Callable[[str], V], text: str) -> V:
    """Return what `parse` makes of a text; what is wrong with it, if anything, is the whole."""
    try:
        return parse(text)
    except ValueError:
        raise ValueError from None


def flag() -> Domain:
    """Return the kind of what is on or off.

    Examples
    --------
    >>> flag().read("yes"), flag().read("0")
    (True, False)
    """
    return Domain("flag", "1, true, yes or on, or 0, false, no or off", _is_on)


def inverted_flag() -> Domain:
    """Return the kind of flags that turn off what is on."""
    return Domain("flag", flag().allowed, lambda text: not _is_on(text))


def number(what: str) -> Domain:
    """Return the kind of whole numbers of something, such as ``threads; 0 means one per CPU``."""
    return Domain("number", f"a number of {what}", _whole)


def seconds(most: float, what: str) -> Domain:
    """Return the kind of times from 0 to `most` seconds; `what` tells what 0 means."""

    def read(text: str) -> float:
        found = read_by(float, text)
        if not 0 <= found <= most:
            raise ValueError
        return found

    return Domain("seconds", f"a number of seconds; {what}", read)


def size(what: str) -> Domain:
    """Return the kind of sizes of memory; `what` tells what 0 means."""

    def read(text: str) -> int:
        from tile_api.disk_cache.location import parse_size

        return read_by(parse_size, text)

    return Domain("size", f"a size such as 500M or 4GiB; {what}", read)


def text(allowed: str) -> Domain:
    """Return the kind of text that is read by whoever it is for."""
    return Domain("text", allowed, str)


def folder() -> Domain:
    """Return the kind of folders, which need not exist yet."""
    return Domain("folder", "a folder that you may write", path_of)


def path_of(text: str) -> Path:
    """Return a path; ``~`` and ``~user`` are homes, if there are such."""
    if "\0" in text:
        raise ValueError(text)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(text) from None


def choice(*names: str) -> Domain:
    """Return the kind that is one of a few names."""

    def read(found: str) -> str:
        if found not in names:
            raise ValueError
        return found

    return Domain("name", _listed(names, "or"), read)


def names(known: Iterable[str], *, signs: str = "", allowed: str = "") -> Domain:
    """Return the kind of lists of `known` names, with commas or blanks between them.

    One of `signs` may stand before a name. Without `allowed`, it is "some of" the names.

    Examples
    --------
    >>> names(["ir", "src"]).read("ir, src")
    ('ir', 'src')
    """
    every = tuple(known)

    def read(found: str) -> tuple[str, ...]:
        listed = tuple(split(found))
        for name in listed:
            bare = name[1:] if name[:1] in signs and signs else name
            if bare not in every:
                raise ValueError(f"there is no {bare!r}")
        return listed

    return Domain("names", allowed or f"some of {_listed(every, 'and')}", read)


def split(listed: str) -> list[str]:
    """Return the words of a list with commas or blanks between them."""
    return listed.replace(",", " ").split()


def _is_on(found: str) -> bool:
    word = found.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError
    return word in _TRUE


def _whole(found: str) -> int:
    if not found.isdecimal():
        raise ValueError
    return int(found)


def _listed(words: Iterable[str], last: str) -> str:
    every = [*words]
    return ", ".join([*every[:-2], f" {last} ".join(every[-2:])])
