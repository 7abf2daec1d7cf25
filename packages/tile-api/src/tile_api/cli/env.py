"""``tile env``: all settings, their values, where those come from, and what they mean."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tile_api.settings.variables import Variable, variables
from tile_core.environment import environment
from tile_core.errors import FrontendValueError


@dataclass(frozen=True, slots=True)
class CurrentSetting:
    """One setting as it is now: the variable that says so (or ""), its value, what is wrong."""

    row: Variable
    source: str
    value: str
    error: FrontendValueError | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Every setting is an environment variable, and an argument of "
        "`tile.settings.override`. Ends with 1 if a variable has a value that means nothing."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of some variables or settings")
    parser.add_argument("--json", action="store_true", help="for programs: one list of records")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 if a variable has a value that means nothing."""
    env = environment()
    found = [looked_up(row, env) for row in _named(args.names)]
    if args.json:
        sys.stdout.write(json.dumps([_record(each) for each in found], indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(map(_told, found)))
    wrong = [each.error for each in found if each.error is not None]
    sys.stderr.writelines(f"{error}\n" for error in wrong)
    return 1 if wrong else 0


def looked_up(row: Variable, env: Mapping[str, str]) -> CurrentSetting:
    """Return what an environment says of a setting."""
    source = row.source(env)
    if source is None:
        return CurrentSetting(row, "", row.unset or _shown(row.default))
    try:
        row.read(env)
    except FrontendValueError as error:
        return CurrentSetting(row, source, env[source], error)
    return CurrentSetting(row, source, env[source])


def _named(names: list[str]) -> list[Variable]:
    known = {name: row for row in variables() for name in (row.name, row.field, *row.aliases)}
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=3)
            raise FrontendValueError(
                f"there is no setting {name!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else "`tile env` lists all of them",
            )
    return [known[name] for name in names] if names else [*variables()]


def _told(found: CurrentSetting) -> str:
    row = found.row
    wrong = ", which means nothing" if found.error else ""
    head = f"{found.source}={found.value}{wrong}" if found.source else f"{row.name} ({found.value})"
    texts = [row.meaning, f"Setting: {row.field}."]
    if row.aliases:
        texts.append(f"Also: {', '.join(row.aliases)}.")
    lines = textwrap.wrap(" ".join(texts), width=84, break_long_words=False)
    return "".join(f"{line}\n" for line in (head, *(f"    {line}" for line in lines)))


def _record(found: CurrentSetting) -> dict[str, object]:
    return {
        "variable": found.row.name,
        "setting": found.row.field,
        "value": found.value,
        "source": found.source,
        "default": _plain(found.row.default),
        "meaning": found.row.meaning,
        "aliases": found.row.aliases,
        "decides_code": found.row.of_code,
        "error": None if found.error is None else str(found.error),
    }


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _plain(value: object) -> object:
    """Return a default as JSON has it."""
    return os.fspath(value) if isinstance(value, Path) else value
