"""Who imports whom, read from the text of modules: nothing is loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Imports:
    """What a module imports.

    Parameters
    ----------
    run
        Names that are imported when it is loaded, or when one of its functions runs.
    """

    run: frozenset[str]
    types: frozenset[str]  # names that are imported for type checkers only


@dataclass(frozen=True)
class ImportGraph:
    """Modules with their files, and the modules that each imports."""

    files: Mapping[str, Path]  # by module name

    @cached_property
    def imports(self) -> dict[str, Imports]:
        """What each module imports of the others."""
        return {name: self._resolved(path) for name, path in self.files.items()}

    def edges(self, *, types: bool = True) -> dict[str, frozenset[str]]:
        """Return what each module imports, with or without what only type checkers see."""
        return {
            name: found.run | found.types if types else found.run
            for name, found in self.imports.items()
        }

    def dependents(self, modules: Iterable[str]) -> dict[str, int]:
        """Return who imports `modules`, directly or not, and over how many imports; 0: itself."""
        importers: dict[str, list[str]] = {name: [] for name in self.files}
        for name, found in self.edges().items():
            for imported in found:
                importers[imported].append(name)
        distance = {name: 0 for name in modules if name in self.files}
        layer = list(distance)
        while layer:
            found = dict.fromkeys(who for name in layer for who in importers[name])
            layer, steps = [who for who in found if who not in distance], distance[layer[0]] + 1
            distance |= dict.fromkeys(layer, steps)
        return distance

    def circles(self, *, types: bool) -> list[frozenset[str]]:
        """Return the sets of modules that import each other, directly or not."""
        edges = self.edges(types=types)
        return [frozenset(found) for found in _components(edges) if len(found) > 1]

    def _resolved(self, path: Path) -> Imports:
        run: set[str] = set()
        types: set[str] = set()
        for name, is_typed in _imported(path.read_text()):
            known = name if name in self.files else name.rpartition(".")[0]
            if known in self.files and self.files[known] != path:
                (types if is_typed else run).add(known)
        return Imports(frozenset(run), frozenset(types - run))


def modules_of_packages(root: Path = ROOT) -> dict[str, Path]:
    """Return the modules of our packages, by name."""
    return _modules(sorted(root.glob("packages/*/src")))


def modules_of_tests(root: Path = ROOT) -> dict[str, Path]:
    """Return the modules of our tests, named by their folders below ``tests``."""
    return _modules([root / "tests"])


def _modules(folders: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _imported(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the names that a module's text imports, and whether type checkers alone do."""
    found: list[tuple[str, bool]] = []
    ahead: list[tuple[ast.AST, bool]] = [(ast.parse(text), False)]
    while ahead:
        node, is_typed = ahead.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, is_typed) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(f"{node.module}.{alias.name}", is_typed) for alias in node.names]
        elif isinstance(node, ast.If) and _asks_for_type_checkers(node.test):
            ahead += [(inner, True) for inner in node.body]
            ahead += [(inner, is_typed) for inner in node.orelse]
        elif not isinstance(node, ast.expr):  # no expression has a statement in it
            ahead += [(inner, is_typed) for inner in ast.iter_child_nodes(node)]
    return tuple(found)


def _asks_for_type_checkers(test: ast.expr) -> bool:
    name = test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")
    return name == "TYPE_CHECKING"


def _components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components (Tarjan, "Depth-first search", 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(root: str) -> None:
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in stack:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    at = stack.index(name)
                    found.append(stack[at:])
                    del stack[at:]

    for name in edges:
        if name not in index:
            visit(name)
    return found
