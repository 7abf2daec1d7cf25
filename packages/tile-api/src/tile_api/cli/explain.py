"""``tile explain``: what an error means, and what to do about it."""

from __future__ import annotations

import argparse
import sys

from tile_api.error_explanations import error_pages
from tile_core.errors import FrontendValueError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Print the page of an error's code: its cause, an example, and a fix. "
        "Without a code, list all codes."
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="such as TL6503, or its name")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    pages = error_pages()
    if not args.codes:
        sys.stdout.writelines(f"{p.code}  {p.name:<20} {p.summary}\n" for p in pages.values())
        return 0
    texts = [pages[_code(asked, {p.name: p.code for p in pages.values()})].text
             for asked in args.codes]  # fmt: skip
    sys.stdout.write("\n".join(texts))
    return 0


def _code(asked: str, codes: dict[str, str]) -> str:
    """Return the code that a user means: as errors show it, in any case, or by its name."""
    word = asked.strip("[]: ")
    word = f"TL{word}" if word.isdecimal() else word
    names = {name.lower(): code for name, code in codes.items()}
    if word.upper() in codes.values():
        return word.upper()
    if word.lower() in names:
        return names[word.lower()]
    from difflib import get_close_matches

    near = get_close_matches(word.upper(), codes.values(), n=4, cutoff=0.75)
    near += [names[name] for name in get_close_matches(word.lower(), names, n=2, cutoff=0.7)]
    raise FrontendValueError(
        f"there is no error {asked!r}",
        hint=f"did you mean {' or '.join(sorted({*near}))}? `tile explain` lists all of them"
        if near
        else "`tile explain` lists all of them",
    )
