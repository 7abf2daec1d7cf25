"""Examples of the reference: which function of ``docs/reference/examples`` shows which names."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "reference" / "examples"
PREAMBLE = "import numpy as np\n\nimport tile_api as tile\nimport tile_api.language as T\n"
"""What the code of every example begins with; the pages say it once."""

_TARGETS = re.compile(r"^Runs on: (.+)\.$", re.MULTILINE)
_PRINTS = re.compile(r"^Prints ``(.+)``\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A function that shows what some names of the language are for.

    Attributes
    ----------
    file, name
        The stem of its file, and its own name.
    about
        What its docstring says, where it runs and what it prints apart.
    code
        Its body, without the docstring: what readers paste behind the preamble.
    targets
        Where it runs, from ``Runs on: …`` in its docstring; on every target if that is missing.
    prints
        A line that it prints, or nothing.
    subjects
        Names that its docstring has in backticks, or that it is called by: it is about them.
    used
        All names of the language in its code.
    """

    file: str
    name: str
    about: str
    code: str
    targets: tuple[str, ...]
    prints: str
    subjects: frozenset[str]
    used: frozenset[str]

    def shows(self) -> frozenset[str]:
        """Return the names that it is about and uses."""
        return self.subjects & self.used

    def fits(self, name: str) -> tuple[bool, int]:
        """Return how well it shows one of its names, the less the better."""
        return self.name != name, len(self.code)

    def directives(self) -> str:
        """Return what a page says of it."""
        where = ", ".join(f"``{target}``" for target in self.targets) or "every target"
        code = textwrap.indent(self.code, "   ")
        prints = f" Prints ``{self.prints}``." if self.prints else ""
        told = f"**Example.** {self.about}\n\nRuns on: {where}.{prints}\n\n"
        return f"{told}.. code-block:: python\n\n{code}\n"


def examples() -> Iterator[Example]:
    """Yield all examples, in the order of files and in files."""
    for path in sorted(FOLDER.glob("*.py")):
        source = path.read_text()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield _example(path.stem, node, source)


def _example(file: str, node: ast.FunctionDef, source: str) -> Example:
    text = ast.get_docstring(node) or ""
    lines = source.splitlines()[node.body[0].end_lineno : node.end_lineno]
    said, prints = _TARGETS.search(text), _PRINTS.search(text)
    return Example(
        file,
        node.name,
        _PRINTS.sub("", _TARGETS.sub("", text)).strip(),
        textwrap.dedent("\n".join(lines)).strip("\n"),
        () if said is None else tuple(said[1].split(", ")),
        "" if prints is None else prints[1],
        frozenset(re.findall(r"`T\.(\w+)`", text)) | {node.name},
        frozenset(
            n.attr
            for n in ast.walk(node)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "T"
        ),
    )


def example_of() -> dict[str, Example]:
    """Return for each name of the language the example called by it, else the shortest."""
    found: dict[str, Example] = {}
    for each in examples():
        for name in each.shows():
            best = found.get(name)
            if best is None or each.fits(name) < best.fits(name):
                found[name] = each
    return found
