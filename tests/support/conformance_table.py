"""The page on conformance, written by the run that it tells of: ``nox -s conformance``.

A plugin of pytest: ``pytest -p support.conformance_table`` collects what the contract and the
examples do on each target, and writes the page when all of it has passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from support.example_files import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
PASSED, REFUSED, FAILED = "passed", "refused", "failed"

Results = Mapping[tuple[str, str], str]
"""What came of each kernel on each target: ``("gemm/NT/float32-float32/24x20x18", "cpu")``."""

HEAD = """\
# Conformance

Written by `nox -s conformance`, from the run that this page tells of: every case of the contract
(`tile_core.testing.conformance`) and every kernel file of [examples/](../../examples/README.md),
the same text for every target. Results are compared with NumPy's. GPUs are emulated: the text that
a GPU's compiler gets runs thread by thread, with all checks on. On the CPU tensors of the contract
lie between pages that cannot be touched, and cases run for lesser processors as well.

A number says how many cases there are, and that all of them passed; `7 of 9` that two of nine were
refused, with an error that says so.
"""
CONTRACT = "## Operators"
TYPES = "## Element types"
EXAMPLES = "## Kernel files"

_CASE = re.compile(r"test_contract\[(?P<target>[^\[\]]+?)-(?P<name>[a-z]+/.*)\]$")
_EXAMPLE = re.compile(r"test_in_the_emulator\[(?P<name>[^\[\]]+)-(?P<target>(?:cuda|hip):\w+)\]$")
_ON_THE_CPU = re.compile(r"test_on_the_cpu\[(?P<name>[^\[\]]+)\]$")
_INTERPRETED = re.compile(r"test_in_the_interpreter\[(?P<name>[^\[\]]+)\]$")
_TABLE = re.compile(r"^\|.*\|$", re.MULTILINE)


def case_of(nodeid: str) -> tuple[str, str] | None:
    """Return the case and the target that a test is about, or None if it is about neither."""
    if found := _CASE.search(nodeid):
        return found["name"], found["target"].removesuffix("@sim")
    return None


def example_of(nodeid: str) -> tuple[str, str] | None:
    """Return the example and the target that a test is about, or None if it is about neither."""
    for pattern, target in ((_EXAMPLE, ""), (_ON_THE_CPU, "cpu"), (_INTERPRETED, "interpret")):
        found = pattern.search(nodeid)
        if found is not None and found["name"] in NAMES:  # not one that is for one machine only
            return found["name"], target or found["target"]
    return None


def is_derived(name: str) -> bool:
    """Whether a case follows from the class of its operator: docs/reference/operators.md."""
    return name.startswith("operator/")


def operator_of(name: str) -> str:
    return "/".join(name.split("/")[:2])


def type_of(name: str) -> str:
    """Return the element type in a case's name; a few name scopes there, and are about float32."""
    return name.split("/")[2].split("-")[0].replace("shared", "float32").replace("local", "float32")


def render(cases: Results, examples: Results) -> str:
    """Return the page."""
    targets = ordered({target for _, target in cases})
    parts = [
        HEAD,
        f"{CONTRACT}\n\n{counted(cases, targets, operator_of, 'operator')}",
        f"{TYPES}\n\nOf the first operand, or of the only one.\n\n"
        f"{counted(cases, targets, type_of, 'type')}",
        f"{EXAMPLES}\n\n{marked(examples, ordered({target for _, target in examples}))}",
    ]
    return "\n".join(parts)


def ordered(targets: Iterable[str]) -> list[str]:
    """Return targets as columns stand: the definition, the CPU, then GPUs by generation."""
    first = {"interpret": 0, "cpu": 1}

    def place(target: str) -> tuple[int, str, int, str]:
        maker, _, arch = target.partition(":")
        number = re.search(r"\d+", arch)
        return first.get(target, 2), maker, int(number[0]) if number else 0, arch

    return sorted(targets, key=place)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def counted(cases: Results, targets: Sequence[str], key: Callable[[str], str], title: str) -> str:
    found = Counter((key(name), target, result) for (name, target), result in cases.items())

    def cell(row: str, target: str) -> str:
        passed, refused = (found[row, target, result] for result in (PASSED, REFUSED))
        return f"{passed} of {passed + refused}" if refused else f"{passed}"

    rows = sorted({key(name) for name, _ in cases})
    return table([title, *targets], ([f"`{r}`", *(cell(r, t) for t in targets)] for r in rows))


def marked(examples: Results, targets: Sequence[str]) -> str:
    words = {PASSED: "yes", REFUSED: "refused"}
    rows = sorted({name for name, _ in examples})
    return table(
        ["file", *targets],
        (
            [
                f"[{name}](../../examples/{name}.py)",
                *(words.get(examples.get((name, t), ""), "") for t in targets),
            ]
            for name in rows
        ),
    )


def tables_of(page: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return cells by heading, row and target, as the page has them."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for heading in (CONTRACT, TYPES, EXAMPLES):
        section = page.split(f"{heading}\n")[1].split("\n## ")[0]
        lines = [
            [c.strip() for c in line.strip("|").split("|")] for line in _TABLE.findall(section)
        ]
        (_, *targets), _, *rows = lines
        found[heading] = {
            re.sub(r"^`|`$|^\[|\]\(.*\)$", "", row): dict(zip(targets, cells, strict=True))
            for row, *cells in rows
        }
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Collector())


class Collector:
    """Remembers what came of each kernel; with several workers, in the process that has them."""

    def __init__(self) -> None:
        self.cases: dict[tuple[str, str], str] = {}
        self.examples: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and not report.failed:
            return
        refused = report.skipped and hasattr(report, "wasxfail")
        result = REFUSED if refused else PASSED if report.passed else FAILED
        for of, into in ((case_of, self.cases), (example_of, self.examples)):
            if (key := of(report.nodeid)) is not None:
                into[key] = result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        results = {**self.cases, **self.examples}
        if not self.cases or not self.examples or FAILED in results.values():
            return
        shown = {key: result for key, result in self.cases.items() if key[1] != "toy"}
        PAGE.write_text(render(shown, self.examples))
