"""The reference of the command line is what its parsers say."""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tile_api.cli import VERBS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
HEAD = """\
# The command line

Written from the parsers by `pytest tests/docs/test_command_line_page.py --update-golden`.

`tile` comes with `tile-api`; `python -m tile_api.cli` is the same. `tile --help` lists the verbs,
`tile VERB --help` tells what one takes, `tile --version` what is installed. Settings are
[environment variables](environment.md).

| it ends with | when |
|---|---|
| 0 | it was done |
| 1 | it failed: the error, its code and the way out are on stderr, and `tile explain` tells more |
| 2 | the arguments make no sense: a sentence on stderr says why |
| 130 | it was interrupted |
| 141 | nobody reads its output any longer; one that is closed from the start is discarded |
"""
GUIDES = {
    "bench": "measure-a-kernel.md",
    "bundle": "save-a-kernel.md",
    "cache": "reuse-kernels.md",
    "check": "check-a-kernel.md",
    "doctor": "look-from-the-command-line.md",
    "env": "watch-the-compiler.md",
    "explain": "look-from-the-command-line.md",
    "lower": "look-from-the-command-line.md",
    "reduce": "report-a-bug.md",
    "report": "read-a-report.md",
    "source": "look-from-the-command-line.md",
    "run": "run-tilelang-programs.md",
    "tune": "tune-a-kernel.md",
}
"""Pages that show how a verb is used."""


def render() -> str:
    """Return the page."""
    parts = [HEAD]
    for verb, line in VERBS.items():
        guide = f" [How it is used](../how-to/{GUIDES[verb]})." if verb in GUIDES else ""
        parts.append(f"## tile {verb}\n\n{_sentence(line)}{guide}\n")
        parts.extend(_parts(parser_of(verb), depth=0))
    return "\n".join(parts)


def parser_of(verb: str) -> argparse.ArgumentParser:
    """Return the parser of one verb."""
    parser = argparse.ArgumentParser(prog="tile").add_subparsers(dest="verb").add_parser(verb)
    importlib.import_module(f"tile_api.cli.{verb}").add_arguments(parser)
    return parser


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _parts(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    if parser.description:
        yield f"{_wrapped(parser.description)}\n"
    if parser.usage:
        yield f"```text\n{_unindented(parser.usage)}\n```\n"
    rows = [row for action in parser._actions if (row := _row(action))]
    if rows:
        yield "\n".join(rows) + "\n"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                yield f"### {inner.prog}\n\n{_sentence(helps.get(name, ''))}\n"
                yield from _parts(inner, depth + 1)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 99, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _unindented(usage: str) -> str:
    return "\n".join(line.strip() for line in usage.splitlines())


def _row(action: argparse.Action) -> str | None:
    hidden = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    if hidden or action.help == argparse.SUPPRESS:
        return None
    if action.option_strings:
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        if action.choices and not action.metavar:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        name = ", ".join(action.option_strings) + (f" {value}" if value else "")
    else:
        name = str(action.metavar or action.dest)
    return _wrapped(f"- `{name}`: {action.help}", indent="  ")


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_has_a_meaning(verb: str) -> None:
    """What `tile --help` says of a verb is said there, too, and nothing is left unexplained."""
    parsers = [parser_of(verb)]
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
            else:
                assert action.help, f"{parser.prog} {action.dest}"
    assert parsers[0].description
