"""Mutants of our own Python: which changes of one token no test notices.

``python -m tools.mutants [--all | FILES] [--count 60] [--seed 1] [--minutes 60]`` makes mutants of
the packages' files that differ from main, runs all tests once to see which of them run the changed
places, then these tests on each mutant, and prints survivors.
Mutants of the C++ that kernels are printed as are another matter: see `fuzz.mutants`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType

from tools.changed import changed_files
from tools.import_graph import ROOT, ImportGraph, modules_of_packages, modules_of_tests
from tools.mutant_sites import Mutant, switched, write_switch

LEFT_OUT = ("__init__.py", "__main__.py")
CASES = ROOT / "packages/tile-core/src/tile_core/testing/conformance"
"""Tests themselves: another size of a case is another question, no mistake in an answer."""
JUDGE = "case.py"
"""The module among them that says what is right."""
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)


def shown(mutant: Mutant) -> str:
    """Return a line about a mutant."""
    before = mutant.path.read_bytes()[mutant.start : mutant.end].decode()
    where = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
    return f"{where} {mutant.kind}: {' '.join(before.split())[:60]} -> {mutant.after[:60]}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file; none changes docstrings, annotations or messages alone."""
    raw = path.read_bytes()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    found = []
    for node, kind, after in _changes(ast.parse(raw)):
        start = at(node.lineno, node.col_offset)
        end = at(node.end_lineno or node.lineno, node.end_col_offset or 0)
        found.append(Mutant(path, node.lineno, kind, start, end, after))
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Yield each node that can be changed, how, and the text in its place."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.expr, ast.stmt)):
            yield from ((node, kind, text) for kind, text in _changed(node))
        todo += _code_in(node)


def _code_in(node: ast.AST) -> list[ast.AST]:
    """Return the children that are run: no annotations, decorators, default messages."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)):
        return []
    left_out: list[ast.AST | None] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        left_out += [node.returns, node.args, *node.decorator_list]
    elif isinstance(node, ast.ClassDef):
        left_out += [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.AnnAssign):
        left_out += [node.annotation]
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return []
    return [child for child in ast.iter_child_nodes(node) if child not in left_out]


def _changed(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            other = ast.Compare(left, [FLIPPED[type(op)]()], [right])
            yield "comparison", f"({ast.unparse(other)})"
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and abs(value) < 1 << 20:
            yield "off by one", f"({value + 1})"
        case ast.BoolOp(op=op, values=values):
            swapped = ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
            yield "and/or", f"({ast.unparse(swapped)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", f"({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, SWAPPED):
            if not isinstance(left, ast.Constant) or not isinstance(left.value, str):  # "%" of text
                yield "operands", f"({ast.unparse(ast.BinOp(right, op, left))})"
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield "statement", "pass"


def chosen(files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants: a file is drawn by how many it has, each mutant once."""
    every = [mutant for path in sorted(files) for mutant in mutants_of(path)]
    return Random(seed).sample(every, min(count, len(every)))


def nearest_tests(path: Path, graph: ImportGraph) -> list[Path]:
    """Return the test files that import a file, the likeliest to notice a change first.

    Those named after it come first, then those over the fewest imports.
    """
    (name,) = (name for name, file in graph.files.items() if file == path)
    distance = graph.dependents([name])
    tests = {n: p for n, p in graph.files.items() if p.name.startswith("test_") and n in distance}
    stem, package = path.stem, name.split(".")[0]

    def order(test: str) -> tuple[bool, bool, int, str]:
        alike = stem in test.rsplit(".", 1)[-1] or name.split(".")[-2] in test.rsplit(".", 1)[-1]
        return (not alike, f"unit.{package}." not in test, distance[test], test)

    return [tests[test] for test in sorted(tests, key=order)]


class Workspace:
    """A copy of the tree, in which files are changed and tests run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        listed = ("git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard")
        names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        for name in names.splitlines():
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        self.folder = folder
        sources = [folder / "switch", *sorted(self.root.glob("packages/*/src"))]
        tests = [self.root / "tests", self.root / "tests/plugins/tile-toy/src"]
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, [*sources, *tests])),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_PROFILE": "ci",
            "TILE_TEST_TURN": "all",
        }

    def fates(
        self,
        mutants: Sequence[Mutant],
        near: Sequence[Sequence[str]],
        tests: Sequence[str],
        seconds: float,
    ) -> list[str]:
        """Return what becomes of each mutant in the tests of files that come by.

        "killed", "survived" if all tests passed, "undecided" if the time was over before, "not
        run" without tests.

        Parameters
        ----------
        near
            By mutant the files that import it, the nearest first.
        tests
            Files or folders of all tests that may run.
        """
        write_switch(self.folder / "switch")
        places: dict[Path, dict[int, Mutant]] = {}
        for number, mutant in enumerate(mutants):
            places.setdefault(mutant.path, {})[number] = mutant
        made = {path: switched(path.read_bytes(), some) for path, some in places.items()}
        for path, text in made.items():
            self._place(path).write_bytes(text)
        plan, answers = self.folder / "plan", self.folder / "fates"
        plan.write_text(json.dumps(dict(enumerate(near))))
        names = {"MUTANT_PLAN": str(plan), "MUTANT_LOG": str(self.folder / "log")}
        plugin = ("-p", "tools.mutant_runs", f"--basetemp={self.folder / 'tmp'}")
        done = self._run((*plugin, *tests), None, names | {"MUTANT_SECONDS": str(seconds)})
        if not answers.exists():
            raise SystemExit(done.stdout)
        told = json.loads(answers.read_text())
        for path in made:
            self._place(path).write_bytes(path.read_bytes())
        found = []
        for number, mutant in enumerate(mutants):
            has_switch = b"_mutant(%d)" % number in made[mutant.path]
            if number in told["imported"] or not has_switch:
                # Who comes by are those who import anew; what was made then, many use.
                users = near[number] or told["came"][str(number)]
                found.append(self._fate(mutant, users, seconds / len(mutants)))
            else:
                found.append(told["fates"].get(str(number), "not run"))
        return found

    def _fate(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
        """Run tests on a mutant that imports meet, in a process that begins with it."""
        place = self._place(mutant.path)
        place.write_bytes(mutant.applied(mutant.path.read_bytes()))
        try:
            done = self._run(("-x", *tests), max(seconds, LEAST))
        except subprocess.TimeoutExpired:
            return "undecided"
        finally:
            place.write_bytes(mutant.path.read_bytes())
        return "survived" if done.returncode in (0, NOTHING_COLLECTED) else "killed"

    def _place(self, path: Path) -> Path:
        return self.root / path.relative_to(ROOT)

    def _run(
        self,
        arguments: Sequence[str],
        timeout: float | None,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(
            command, cwd=self.root, env={**self.environment, **names},
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip


LEAST = 60.0
"""Seconds that a process of its own has at least."""
NOTHING_COLLECTED = 5
"""Pytest's exit status."""


def files_to_mutate(arguments: argparse.Namespace) -> list[Path]:
    """Return the files that the command line asks for: named, all, or those that changed."""
    modules = modules_of_packages().values()
    known = {
        p for p in modules if p.name not in LEFT_OUT and (p.parent != CASES or p.name == JUDGE)
    }
    if arguments.files:
        return [path for name in arguments.files if (path := Path(name).resolve()) in known]
    if arguments.all:
        return sorted(known)
    return [path for name in changed_files(arguments.base) if (path := ROOT / name) in known]


def main() -> None:
    """Make mutants, run tests, print survivors and the score."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="files of packages; default: what changed")
    parser.add_argument("--all", action="store_true", help="mutate every file of the packages")
    parser.add_argument("--base", default="main", help="what differs from this changed")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for all mutants together")
    parser.add_argument("--tests", nargs="*", help="files or folders of tests; default: all")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    arguments = parser.parse_args()
    mutants = chosen(files_to_mutate(arguments), arguments.count, arguments.seed)
    if arguments.list or not mutants:
        print(*map(shown, mutants), sep="\n")
        return
    graph = ImportGraph(modules_of_packages() | modules_of_tests())
    near = [
        [str(path.relative_to(ROOT)) for path in nearest_tests(mutant.path, graph)]
        for mutant in mutants
    ]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        found = workspace.fates(mutants, near, arguments.tests or (), 60 * arguments.minutes)
    for mutant, fate in zip(mutants, found, strict=True):
        if fate != "killed":
            print(fate, shown(mutant))
    fates = Counter(found)
    score = {"killed": fates["killed"], "mutants": len(mutants), "seed": arguments.seed}
    left = f"; the time was over for {fates['undecided']}" if fates["undecided"] else ""
    print(f"{fates['killed']} of {len(mutants)} mutants killed, seed {arguments.seed}{left}")
    if (ROOT / ".nox").is_dir():
        (ROOT / ".nox" / "mutants.json").write_text(json.dumps(score))


if __name__ == "__main__":
    main()
