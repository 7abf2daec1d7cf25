"""Mutants of our own Python: which changes of one token no test notices.

``python -m tools.mutants [--all | FILES] [--count 60] [--seed 1] [--minutes 5] [--keep FOLDER]``
makes mutants of the packages' files that differ from main, runs on each the tests that come by, the
nearest first (see `mutant_runs`), and prints survivors. The folder keeps what is found: the same
command goes on where it was stopped.
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
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random

from support.turns import seconds_of_commit
from tools.changed import changed_files
from tools.import_graph import ROOT, ImportGraph, modules_of_packages, modules_of_tests
from tools.mutant_runs import Journal
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
KEPT = ROOT / ".nox/judged"
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
    elif isinstance(node, ast.match_case):
        left_out += [node.pattern]  # it holds no calls, so no switch
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
    package = name.split(".")[0]

    def order(test: str) -> tuple[int, bool, int, str]:
        last = test.rsplit(".", 1)[-1]
        alike = (path.stem in last) + (name.split(".")[-2] in last)
        return (-alike, f"unit.{package}." not in test, distance[test], test)

    return [tests[test] for test in sorted(tests, key=order)]


def prepare(folder: Path, mutants: Sequence[Mutant]) -> dict[str, str]:
    """Write a copy of the tree with a switch for each mutant; return its tests' environment.

    What is known of other mutants, or of other sources, is forgotten.
    """
    key = sha256("\n".join(map(shown, mutants)).encode())
    for path in modules_of_packages().values():
        key.update(path.read_bytes())
    kept = folder / "key"
    if kept.exists() and kept.read_text() != key.hexdigest():
        (folder / "journal").unlink(missing_ok=True)
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = ("git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard")
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    places: dict[Path, dict[int, Mutant]] = {}
    for number, mutant in enumerate(mutants):
        places.setdefault(mutant.path, {})[number] = mutant
    for path, some in places.items():
        text = switched(path.read_bytes(), some)
        ast.parse(text)
        (tree / path.relative_to(ROOT)).write_bytes(text)
    write_switch(folder / "switch")
    kept.write_text(key.hexdigest())
    sources = [folder / "switch", *sorted(tree.glob("packages/*/src"))]
    tests = [tree / "tests", tree / "tests/plugins/tile-toy/src"]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, [*sources, *tests])),
        "HYPOTHESIS_PROFILE": "ci",
        # Processes that are given files take their rows in turn, too.
        "TILE_TEST_TURN": os.environ.get("TILE_TEST_TURN") or str(seconds_of_commit()),
        "MUTANT_PLAN": str(folder / "plan"),
        "MUTANT_LOG": str(folder / "log"),
    }


def judge(mutants: Sequence[Mutant], arguments: argparse.Namespace) -> Journal:
    """Run tests on mutants until time is over; return what they found, now and earlier."""
    folder = arguments.keep.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = prepare(folder, mutants)
    graph = ImportGraph(modules_of_packages() | modules_of_tests())
    near = {
        number: [str(path.relative_to(ROOT)) for path in nearest_tests(mutant.path, graph)]
        for number, mutant in enumerate(mutants)
    }
    asked = {"near": near, "seconds": 60 * arguments.minutes, "jobs": arguments.jobs}
    (folder / "plan").write_text(json.dumps(asked))
    (folder / "log").unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutant_runs",
        f"--basetemp={folder / 'tmp'}", *(arguments.tests or ()),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder / "tree", env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return Journal(folder / "journal")


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
    parser.add_argument("--minutes", type=float, default=5, help="of tests on one mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--keep", type=Path, default=KEPT, help="folder of what is found")
    parser.add_argument("--tests", nargs="*", help="files or folders of tests; default: all")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    arguments = parser.parse_args()
    mutants = chosen(files_to_mutate(arguments), arguments.count, arguments.seed)
    if arguments.list or not mutants:
        print(*map(shown, mutants), sep="\n")
        return
    journal = judge(mutants, arguments)
    for number, mutant in enumerate(mutants):
        if number not in journal.killed:
            print(f"survived {journal.passed[number]:.0f} seconds of tests:", shown(mutant))
    killed = len(journal.killed)
    print(f"{killed} of {len(mutants)} mutants killed, seed {arguments.seed}")
    score = {"killed": killed, "mutants": len(mutants), "seed": arguments.seed}
    if (ROOT / ".nox").is_dir():
        (ROOT / ".nox" / "mutants.json").write_text(json.dumps(score))


if __name__ == "__main__":
    main()
