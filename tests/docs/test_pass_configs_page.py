"""The reference of pass configurations is what their table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile_api.pass_configs.keys import PassConfigKey
from tile_api.pass_configs.table import PassConfig, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "pass-configs.md"
HEAD = """\
# Pass configurations

Written from `tile_api.pass_configs.table` by
`pytest tests/docs/test_pass_configs_page.py --update-golden`.

`pass_configs` of `tile.compile`, `tile.jit` and `tile.lower`, and `T.annotate_pass_configs` in a
kernel, are dictionaries of these keys: TileLang's, and some more. Members of `tile.PassConfigKey`
and their values mean the same; so do newer spellings with `tirx.` for `tir.`.

```python
import tile_api as tile
import tile_api.language as T


@T.prim_func
def inverse(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = 1 / T.exp(A[i])


fast = {tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}
lowered = tile.lower(inverse, target="cuda:sm_80", pass_configs=fast)
assert lowered.lowered.module.compile_flags == ("--use_fast_math",)
```

Values are checked: what a key cannot be is refused ([TL1002](../errors/TL1002.md)). Flags are
`True` or `False`, or 1 or 0. A key of another kind of target changes nothing, so that a kernel
needs no edits between machines.
"""
IDLE = """\
## Keys that have nothing to do

Each is silent if it asks for what is done anyway. Otherwise a warning names it, with the reason
that stands here; where ignoring a value would change results, it is an error.
"""


def render() -> str:
    """Return the page."""
    rows = table().values()
    parts = [HEAD, _working([row for row in rows if row.targets])]
    parts += [IDLE, _idle([row for row in rows if not row.targets])]
    return "\n".join(parts)


def _working(rows: list[PassConfig]) -> str:
    lines = ["| key | holds | without it | targets | what it does |", "|---|---|---|---|---|"]
    for row in rows:
        key = f"`{row.key.value}`<br>`{row.key.name}`"
        lines.append(
            f"| {key} | {row.kind.allowed} | {_text(row.default)} | {row.targets} | {row.meaning} |"
        )
    return "\n".join(lines) + "\n"


def _idle(rows: list[PassConfig]) -> str:
    lines = ["| key | as if it were | because | instead |", "|---|---|---|---|"]
    for row in rows:
        always = " or ".join(_text(value) for value in row.silent if value not in (None, ""))
        lines.append(
            f"| `{row.key.value}`<br>`{row.key.name}` | {always or 'not there'} | {row.meaning} | "
            f"{row.hint.replace('|', ',')}{' (an error)' if row.refused else ''} |"
        )
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    return {"": "none", "None": "none"}.get(str(value), str(value))


def test_page_is_up_to_date(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(render())
    assert PAGE.read_text() == render()


def test_the_table_has_every_key() -> None:
    assert set(table()) == {key.value for key in PassConfigKey}


def test_every_key_that_the_sources_read_does_something() -> None:
    """And every key of which the table says that it does something is read."""
    texts = [
        path.read_text()
        for path in (ROOT / "packages").rglob("*.py")
        if path.parent.name != "pass_configs"
    ]
    read = {name for text in texts for name in re.findall(r'"((?:tl|tir|cuda|hip)\.\w+)"', text)}
    of_backends = {name for text in texts for name in re.findall(r'"\{self\.kind\}\.(\w+)"', text)}
    read |= {f"{kind}.{name}" for kind in ("cuda", "hip") for name in of_backends}
    working = {name for name, row in table().items() if row.targets}
    assert working - read == set()
    assert {name for name in read if name in table()} == working
