"""Pages of the reference: every public name, from its docstring and its signature."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from shown_examples import PREAMBLE, Example, example_of, examples

import tile_api
import tile_api.frontend.dtypes
import tile_api.frontend.function
import tile_api.frontend.macro
import tile_api.language as language
from tile_api.frontend.dtypes import DTYPES
from tile_api.language.gpu_only import GPU_NAMES
from tile_api.language.nodes import NODES
from tile_api.language.unavailable import UNAVAILABLE

_TYPES = sorted({*DTYPES, "boolean", "void"})
_TABLES = frozenset({*_TYPES, *GPU_NAMES, *UNAVAILABLE})
"""Names of the language that come from tables: they share a page."""

_NONE: Mapping[str, Example] = {}
_HEADS = {"Element types": "dtypes"}
"""Examples that stand at the head of a part of that page."""

_REFUSED = "Runs on: no target. Compilation refuses it, and says what to write instead."
_BEGIN = f"""Examples begin with

.. code-block:: python

{textwrap.indent(PREAMBLE, "   ")}

and run as they stand where their line says so: on the processor or GPU at hand, or on what the
variable ``TILE_TARGET`` names, such as ``interpret`` or, in the emulator, ``cuda:sm_80@sim``.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Names of the language on one page."""

    page: str
    title: str
    names: tuple[str, ...]


def write_reference(folder: Path) -> list[str]:
    """Write a page for each group of names; return the pages' names, in their order."""
    folder.mkdir(parents=True)
    shown = example_of()
    pages = {"tile": _page("tile: what users call", _members("tile", tile_api, tile_api.__all__))}
    for group in _groups():
        pages[group.page] = _page(group.title, _members("T", language, group.names, shown), _BEGIN)
    pages["tables"] = _tables(shown)
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text)
    return list(pages)


def public_names() -> set[str]:
    """Return the names that the reference has to have an entry for."""
    own = {f"tile.{name}" for name in tile_api.__all__}
    said = {f"T.{name}" for group in _groups() for name in group.names}
    return own | said | {f"T.{name}" for name in _TABLES}


def wanted_examples() -> set[str]:
    """Return the names that need an example: those of all groups."""
    return {name for group in _groups() for name in group.names}


def _groups() -> Iterator[Group]:
    for home in (tile_api.frontend.function, tile_api.frontend.macro, tile_api.frontend.dtypes):
        yield _group(home, [name for name in home.__all__ if name not in DTYPES])
    for found in pkgutil.iter_modules(language.__path__):
        module = importlib.import_module(f"{language.__name__}.{found.name}")
        names = list(NODES) if found.name == "nodes" else getattr(module, "__all__", [])
        if names:
            yield _group(module, names)


def _group(module: ModuleType, names: list[str]) -> Group:
    page = module.__name__.rpartition(".")[2]
    title = (module.__doc__ or page).partition("\n")[0].rstrip(".").replace("`", "")
    return Group(page, title, (*names, "JITFunc") if page == "function" else tuple(names))


def _page(title: str, entries: Iterator[str], head: str = "") -> str:
    return "\n".join([title, "=" * len(title), "", head, *entries])


def _members(
    prefix: str, home: Any, names: Iterable[str], shown: Mapping[str, Example] = _NONE
) -> Iterator[str]:
    for name in sorted(names):
        value = getattr(home, name, None)
        kind = "function" if callable(value) else "data"  # what follows a module, Sphinx puts in it
        if isinstance(value, type):
            kind = "class"
        yield f".. py:{kind}:: {prefix}.{name}{_signature(value) if kind != 'data' else ''}\n"
        yield _indented(_docstring(value)) + "\n"
        if name in shown:
            yield _indented(shown[name].directives()) + "\n"


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in found.parameters.values()
        if not p.name.startswith("_")
    ]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<[^>]*>", "...", text)


def _docstring(value: Any) -> str:
    """Return a docstring of NumPy's form as reStructuredText."""
    from sphinx.ext.napoleon import Config, NumpyDocstring

    text = inspect.getdoc(value) or ""
    if text == inspect.getdoc(type(value)) and not type(value).__module__.startswith("tile_"):
        text = ""  # of a type of Python's, and not its own
    config = Config(napoleon_use_param=False, napoleon_use_rtype=False)
    return str(NumpyDocstring(text, config))


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" if line.strip() else "" for line in text.splitlines())


def _tables(shown: Mapping[str, Example]) -> str:
    title = "Element types, GPU instructions, names that are missing"
    lines = [title, "=" * len(title), "", _BEGIN, ""]
    parts = {
        "Element types": _TYPES,
        "Instructions of GPUs": sorted(GPU_NAMES),
        "Names that programs import and cannot use": sorted(UNAVAILABLE),
    }
    for title, names in parts.items():
        lines += [title, "-" * len(title), ""]
        lines += [each.directives() for each in examples() if each.name == _HEADS.get(title)]
        for name in names:
            text = inspect.getdoc(getattr(language, name, None)) if title[0] == "I" else ""
            lines += [f".. py:data:: T.{name}", "", _indented(text or ""), ""]
            if title[0] == "I":
                told = shown[name].directives() if name in shown else _REFUSED
                lines += [_indented(told), ""]
    return "\n".join(lines)
