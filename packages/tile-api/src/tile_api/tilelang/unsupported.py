"""Names of TileLang outside its language that exist so that programs can be imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from typing_extensions import Never

from tile_core.errors import UnsupportedName

REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "passes": (
            "is a pass of another compiler, whose programs are not the ones of this one",
            "look at a kernel between the passes of this one: "
            "tile.lower(func, target).ir('planned')",
        ),
        "phases": (
            "is a part of another compiler",
            "compile with tilelang.compile, or write source with tilelang.lower",
        ),
        "emitters": (
            "writes the matrix instructions of one GPU by hand",
            "use T.gemm, which chooses the instructions",
        ),
        "sources": (
            "returns functions in CUDA, which only one compiler can read",
            "convert with T.reinterpret, T.cast and shifts, as examples/quantised does",
        ),
        "sparse": (
            "orders metadata as the sparse matrix instructions of one GPU read them",
            "pack 4 bits for each group, the first lowest, as T.gemm_sp reads them",
        ),
        "adapters": (
            "is one of several runtimes of another project",
            "leave execution_backend out: there is one runtime",
        ),
        "cute": (
            "belongs to an algebra of layouts under other names",
            "use tilelang.layout.Layout and Fragment, or tile_core.layout",
        ),
        "roller": (
            "is a part of another search for schedules",
            "use tilelang.carver.template, or let tile_api.autotuner search",
        ),
        "builders": (
            "builds programs of another compiler",
            "write the kernel with T: loops, conditions and names are Python's",
        ),
        "machines": (
            "is for a machine that no backend compiles for",
            "compile for cpu, cuda or hip: tile doctor tells what is here",
        ),
        "toolchains": (
            "runs a compiler of another project's choice",
            "compile kernels with tilelang.compile; tile doctor tells which compilers are found",
        ),
        "tuning": (
            "is a part of another tuner",
            "use tilelang.autotune, or tile tune on the command line",
        ),
        "settings": ("is a setting of another project", "tile env tells the settings of this one"),
        "reducing": (
            "makes failing programs small by another command",
            "write tile reduce FILE.py:NAME --message TEXT",
        ),
        "tracing": (
            "shows another compiler at work",
            "write a report of the kernel: tile report FILE.py, or set TILE_KEEP=ir,src,asm",
        ),
    }
)
"""Why a name has no counterpart, continuing "NAME ...", and what to write instead."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A name that raises `UnsupportedName` when it is called or asked for a member.

    Nothing is an instance of it, and annotations may name it.
    """

    name: str  # in full, such as ``tilelang.transform.LayoutInference``
    kind: str  # a key of `REASONS`

    def __call__(self, *args: Any, **keywords: Any) -> Never:
        """Refuse."""
        raise self._refusal(self.name)

    def __getattr__(self, member: str) -> Never:
        """Refuse, except to code that looks for Python's own protocols."""
        if member.startswith("__"):
            raise AttributeError(member)
        raise self._refusal(f"{self.name}.{member}")

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[object, ...]) -> Never:
        raise self._refusal(self.name)

    def __or__(self, other: object) -> Any:
        return Any  # the name stands in an annotation

    __ror__ = __getitem__ = __or__

    def _refusal(self, what: str) -> UnsupportedName:
        from tile_api.frontend.source import calling_span

        reason, hint = REASONS[self.kind]
        return UnsupportedName(f"{what} {reason}", span=calling_span(), hint=hint)
