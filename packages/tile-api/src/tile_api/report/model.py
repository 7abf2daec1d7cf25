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
    """A line of a program's text.

    Parameters
    ----------
    at
        Where the user wrote what it does; None where nobody knows.
    aside
        What is known of it beside the text, such as the layout of a tile.
    """

    text: str
    at: SourceLine | None = None
    aside: str = ""


Change = Literal["same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a difference.

    Parameters
    ----------
    change
        Whether it is in both programs, only in the later one, or only in the earlier one.
    old, new
        Its numbers in the two programs, from 1; 0 where it is not.
    marks
        Where characters changed, as pairs of begin and end; empty where the whole line did.
    """

    change: Change
    line: Line
    old: int
    new: int
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PassStep:
    """A program after one pass.

    Parameters
    ----------
    name
        The pass.
    summary
        What it does, in a sentence; empty where it does not say.
    launch
        Which launch the program is the body of, from 1; 0 for whole kernels.
    kind
        How it came out of the program before: ``"same"``, ``"changed"``, ``"rewritten"`` so
        much that a comparison says nothing, or ``"annotated"``: the same, with more known of it.
    rows
        The whole program, and what the pass took out of it. Empty where nothing changed.
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
    """The program at a stage that is not compared with another.

    Parameters
    ----------
    name, title
        For links, and for people.
    explanation
        What one is looking at.
    left_out
        How many more lines there are, where the text is too long to be read.
    """

    name: str
    title: str
    explanation: str
    lines: tuple[Line, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What the user wrote in one file.

    Parameters
    ----------
    name
        Of the file, without its folders.
    first
        The number of the first of `lines`.
    """

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
    """Where the elements of a tile are.

    Parameters
    ----------
    rows, columns
        Of the whole tile, or of its first matrix, where it has more than two dimensions.
    corner
        The first elements, by row.
    image
        All elements, one point each, as the text of a PNG file in base 64.
    legend
        What the texts and the colours mean.
    """

    rows: int
    columns: int
    corner: tuple[tuple[Cell, ...], ...]
    image: str
    legend: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A tile and how it is stored, or a loop and who runs its iterations.

    Parameters
    ----------
    what
        The tile with its type and its shape, or the extents of the loop.
    function
        From coordinates to places.
    who, at
        Who asked for that, and where.
    picture
        None where `remark` says why.
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
class FunctionNeeds:
    """What one launch needs of the machine.

    Parameters
    ----------
    occupied
        The part of the most warps that one multiprocessor holds; None where nobody knows.
    """

    name: str
    facts: tuple[Fact, ...]
    occupied: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """What the accesses of a line of the user cost in the emulator.

    Parameters
    ----------
    where
        File and line, as text.
    """

    at: SourceLine | None
    where: str
    cost: AccessCost


Activity: TypeAlias = Literal["issue", "transfer", "product", "work", "wait", "use"]
"""Beginning something, bytes in flight, a product, what else threads do, waiting, being read."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that goes on for a while.

    Parameters
    ----------
    lane
        The number of its lane in `Timeline.lanes`.
    start, end
        In units of the picture, which are no measured times.
    number
        The iteration: how often the same statement was run before.
    text
        The statement.
    at
        Where the user wrote it.
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
    """A row of the picture.

    Parameters
    ----------
    kind
        ``"threads"`` of one role, a ``"unit"`` that works beside them, or a ``"tile"`` that copies
        fill and threads read.
    """

    name: str
    kind: Literal["threads", "unit", "tile"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the threads of one block do, and what is in flight meanwhile.

    Parameters
    ----------
    notes
        What was assumed, and what is not drawn.
    """

    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()

    @property
    def length(self) -> float:
        """When the last bar ends."""
        return max((bar.end for bar in self.bars), default=0.0)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that is known of one compiled kernel.

    Parameters
    ----------
    facts
        What stands at the top.
    sources
        What the user wrote, the kernel's own file first.
    steps
        Passes, in order.
    layouts
        None where the target has none.
    remarks
        What the compiler said about its choices, and where.
    pipeline
        None where nothing is drawn.
    needs
        Of each launch; empty where no compiler tells.
    counts
        None where the kernel was not run in the emulator.
    texts
        What became of the program in the end.
    missing
        What could not be told, by part, and why.
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
