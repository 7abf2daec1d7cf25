"""What a report says of a kernel, apart from how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from tile_api.tracing import Timings
    from tile_core.plugins.executor import AccessCost
    from tile_core.remarks import Remark


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """A line of the user: the number of its file in `KernelReport.sources`, and its own there."""

    file: int
    line: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a program, where the user wrote what it does, and what else is known of it."""

    text: str
    at: SourceLine | None = None
    aside: str = ""


Change = Literal["same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a difference, by its numbers in the two programs, from 1; 0 where it is not.

    `marks` are where characters changed, from begin to end; empty where the whole line did.
    """

    change: Change
    line: Line
    old: int
    new: int
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PassStep:
    """A program after one pass, or the body of launch `launch` (from 1) after it.

    It is ``"same"`` as before, ``"changed"``, ``"rewritten"`` so much that a comparison says
    nothing, or ``"annotated"``: the same, with more known of it. `rows` are the whole program, and
    what the pass took out of it; empty where nothing changed.
    """

    name: str
    summary: str
    launch: int
    kind: Literal["same", "changed", "rewritten", "annotated"]
    rows: tuple[Row, ...]
    milliseconds: float

    @property
    def added(self) -> int:
        """Lines that the pass wrote."""
        return sum(row.change == "new" for row in self.rows)

    @property
    def removed(self) -> int:
        """Lines that the pass took out."""
        return sum(row.change == "gone" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Text:
    """The program at a stage that is not compared with another, maybe with lines left out."""

    name: str
    title: str
    explanation: str
    lines: tuple[Line, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What the user wrote in one file, from line `first` on."""

    name: str
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """An element of a tile: where it is, in a word or two, and its colour (0 to 359)."""

    text: str
    hue: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Where the elements of a tile, or of its first matrix, are: some in words, all in colours.

    `image` has one point for each, as the text of a PNG file in base 64.
    """

    rows: int
    columns: int
    corner: tuple[tuple[Cell, ...], ...]
    image: str
    legend: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A tile and how it is stored, or a loop and who runs its iterations; who asked, and where.

    `function` is from coordinates to places; there is no picture where `remark` says why.
    """

    name: str
    what: str
    function: str
    who: str
    at: SourceLine | None
    picture: Picture | None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Where tiles are stored, and who runs loops."""

    tiles: tuple[Drawn, ...]
    loops: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and a value, with what there is to say of it."""

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """A kernel that a function of whole arrays became, and what was fused in it."""

    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class FunctionNeeds:
    """What one launch needs of the machine, and its part of the warps of a multiprocessor."""

    name: str
    facts: tuple[Fact, ...]
    occupied: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """What the accesses of a line of the user, file and line in words, cost in the emulator."""

    at: SourceLine | None
    where: str
    cost: AccessCost


Activity: TypeAlias = Literal["issue", "transfer", "product", "work", "wait", "use"]
"""Beginning something, bytes in flight, a product, what else threads do, waiting, being read."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that goes on for a while, in units of the picture, which are no measured times.

    `number` is the iteration: how often the same statement, `text`, was run before.
    """

    lane: int
    activity: Activity
    start: float
    end: float
    number: int
    text: str
    at: SourceLine | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A row: threads of one role, a unit beside them, or a tile that is filled and read."""

    name: str
    kind: Literal["threads", "unit", "tile"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the threads of one block do, what is in flight meanwhile, and what was assumed."""

    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()

    @property
    def length(self) -> float:
        """When the last bar ends."""
        return max((bar.end for bar in self.bars), default=0.0)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that is known of one compiled kernel, and by part why something is missing.

    There are no layouts, pipeline or counts where the target has none, nothing overlaps, or it was
    not run in the emulator. The sources begin with the kernel's own file. The origin are all
    kernels of the function of arrays that the kernel was made of, if it was.
    """

    name: str
    target: str
    facts: tuple[Fact, ...]
    sources: tuple[Source, ...]
    steps: tuple[PassStep, ...]
    layouts: Layouts | None
    remarks: tuple[tuple[Remark, SourceLine | None], ...]
    pipeline: Timeline | None
    needs: tuple[FunctionNeeds, ...]
    counts: tuple[Count, ...] | None
    texts: tuple[Text, ...]
    timings: Timings
    missing: Mapping[str, str]
    origin: tuple[Origin, ...] = ()
