"""What texts name of our packages exists: programs in strings, patched places, pages, tables.

A name that moves is followed by no type checker into a string, a page or a contract.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = r"tile_(?:api|core|cpu|cuda|hip|launch|nn|sim)"
DOTTED = re.compile(rf"(?<![\w.]){PACKAGE}(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(rf"\bfrom ({PACKAGE}[\w.]*) import (\w+(?:, \w+)*)")

INVENTED = (
    "tests/unit/tools",
    "tests/unit/tile_api/tilelang",
    "tests/docs/test_add_an_operator.py",
    "docs/how-to/add-an-operator.md",
    "CHANGELOG.md",
)
"""Where packages are made up, or were as they are told."""

HEADERS = ("tile_cuda.h", "tile_hip.h", "tile_sim.h")


def texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name in listed:
        if not name.startswith(INVENTED):
            yield name, (ROOT / name).read_text()


@cache
def exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def missing() -> list[str]:
    """Return each file with a name that does not exist."""
    found = set()
    for file, text in texts():
        names = set(DOTTED.findall(text))
        names |= {f"{m[1]}.{n}" for m in IMPORT.finditer(text) for n in m[2].split(", ")}
        found |= {f"{file}: {n}" for n in names if n not in HEADERS and not exists(n)}
    return sorted(found)


@pytest.mark.filterwarnings("ignore")  # of what is imported for its names alone
def test_every_name_exists() -> None:
    assert missing() == []
