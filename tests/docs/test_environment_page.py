"""The reference of environment variables is what the table of variables says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tile_api.settings import Settings
from tile_api.settings.variables import ACCEPTED, OF_THE_SYSTEM, Variable, grouped, variables
from tile_core.logs import CATEGORIES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "environment.md"
HEAD = """\
# Environment variables

Written from `tile_api.settings.variables` by
`pytest tests/docs/test_environment_page.py --update-golden`.

Every setting is an environment variable, an attribute of `tile_api.settings.Settings`, and an
argument of `tile.settings.override`, which holds for a block of one thread. Variables are read when
they are needed: changing one changes what happens next. An empty variable is one that is not set.
`tile env` tells what holds now, and where that comes from.

```python
import tile_api as tile

with tile.settings.override(target="cpu", logs="+passes", cache=False):
    assert tile.settings.target == "cpu"
    assert tile.settings.current().logs == ("+passes",)
```

Flags are on with `1`, `true`, `yes` or `on`, and off with `0`, `false`, `no` or `off`. What means
nothing is refused, with what is allowed: see [TL1002](../errors/TL1002.md). A star marks what
decides which code is generated: a change makes another kernel.
"""
LOGS = """\
## What TILE_LOGS can tell

`TILE_LOGS=cache,passes` tells a line about each, `TILE_LOGS=+passes` the whole program after each
pass that changed it, `TILE_LOGS=all,-phases` everything but one. Handlers of the loggers
`tile.CATEGORY` get the same at the levels `INFO` and `DEBUG`.
"""
OTHERS = """\
## Variables of the system

They belong to others and are honoured.
"""
IGNORED = """\
## Variables of TileLang

`TILELANG_…` names in the tables above mean the same as the variable beside them, if that one is not
set. These are accepted, and change nothing:
"""
NAME = r"(?:TILE|TILELANG|TL)_[A-Z_]+|CC|CXX|CUDA_HOME|CUDA_PATH|ROCM_PATH|HIP_PATH|OMP_NUM_THREADS"


def render() -> str:
    """Return the page."""
    parts = [HEAD]
    for heading, rows in grouped().items():
        parts.append(f"## {heading}\n\n{_table(rows)}")
    parts.append(f"{LOGS}\n{_list(CATEGORIES)}")
    parts.append(f"{OTHERS}\n{_list(OF_THE_SYSTEM)}")
    parts.append(f"{IGNORED}\n{_list(ACCEPTED)}")
    return "\n".join(parts)


def _table(rows: tuple[Variable, ...]) -> str:
    lines = ["| variable | setting | holds | without it | meaning |", "|---|---|---|---|---|"]
    for row in rows:
        names = "<br>".join(f"`{name}`" for name in (row.name, *row.aliases))
        star = " \\*" if row.of_code else ""
        unset = row.unset or {True: "on", False: "off"}.get(row.default, str(row.default))
        holds = "flag" if row.kind.name == "flag" else row.kind.allowed
        lines.append(f"| {names}{star} | `{row.field}` | {holds} | {unset} | {row.meaning} |")
    return "\n".join(lines) + "\n"


def _list(meanings: object) -> str:
    return "".join(f"- `{name}`: {text}\n" for name, text in sorted(dict(meanings).items()))  # type: ignore[call-overload]


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()


def test_the_table_is_the_settings() -> None:
    assert [row.field for row in variables()] == [field.name for field in fields(Settings)]
    assert Settings.from_environment({}) == Settings()
    names = [name for row in variables() for name in (row.name, *row.aliases)]
    assert len(names) == len({*names})
    assert not {*names} & {*ACCEPTED}
    for row in variables():
        assert f"``{row.name}``" in (Settings.__doc__ or "") or f"``{row.name}=1``" in (
            Settings.__doc__ or ""
        ), row.name


def test_the_table_has_every_variable_that_the_sources_name() -> None:
    """What stands in quotes and looks like a variable is one, or a macro of generated code."""
    known = {name for row in variables() for name in (row.name, *row.aliases)}
    known |= {*ACCEPTED, *OF_THE_SYSTEM}
    for path in sorted((ROOT / "packages").rglob("*.py")):
        text = path.read_text()
        if "environ" not in text and "getenv" not in text and "VARIABLE" not in text:
            continue
        for name in re.findall(rf'"({NAME})"', text):
            assert name in known, f"{path.relative_to(ROOT)} names {name}"


def test_every_variable_of_the_table_is_read() -> None:
    """A row that nothing reads would be a promise that is not kept."""
    table = {"variables.py", "settings.py"}
    texts = [
        path.read_text()
        for path in (ROOT / "packages").rglob("*.py")
        if path.name not in table or path.parent.name == "tile_sim"
    ]
    for row in variables():
        read = re.compile(rf'"{row.name}"|(?:settings|found|current\(\))\.{row.field}\b')
        assert any(read.search(text) for text in texts), row.name
