"""What runs the passes of a pipeline: times, programs, listeners, checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, Protocol, TypeVar

from tile_core.ir.stmt import Kernel, Stmt
from tile_core.ir.verify import verify
from tile_core.pass_manager.instrumentation import kept, timed
from tile_core.pass_manager.pipeline import Pass, Pipeline
from tile_core.records import dataclass
from tile_core.target import Target

TILE = "tile"
"""The phase with which every pipeline begins: the whole kernel as it was traced."""

P = TypeVar("P", bound="Kernel | Stmt")


class PassListener(Protocol):
    """Who is told of each pass: the host of plugins."""

    def before_pass(self, name: str, text: Callable[[], str]) -> None:
        """Hear that a pass begins; `text` prints the program."""

    def after_pass(self, name: str, before: Callable[[], str], after: Callable[[], str]) -> None:
        """Hear what a pass did."""


class PipelineStopped(BaseException):
    """The last pass of a pipeline that ends early has run. Nothing is wrong: it is no `Exception`.

    `programs` are what that pass left: the kernel, or a program for each launch.
    """

    def __init__(self, *programs: Kernel | Stmt) -> None:
        super().__init__("the pipeline ends here")
        self.programs = programs


@dataclass(slots=True)
class PassContext:
    """What passes of one phase may ask for, beside the program; phases add attributes.

    `changed` names the passes that have changed the program; `results` are what analyses found, by
    the name of the pass.
    """

    changed: set[str] = field(default_factory=set)
    results: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class TileContext(PassContext):
    """Of the phase with which every pipeline begins.

    `config` returns the value of a pass configuration by its name, or its second argument.
    """

    target: Target
    config: Callable[[str, object], object]

    @property
    def orders_threads(self) -> bool:
        """Whether explicit programs of threads get the barriers that they need."""
        return not self.config("tl.disable_thread_storage_sync", False)


@dataclass(frozen=True, slots=True)
class PassManager:
    """Runs the passes of a pipeline, phase by phase, and tells of each.

    The `listener` is told beside who records (see `instrumentation`); with `verify_each`, whole
    kernels are verified behind every pass that changes them.
    """

    pipeline: Pipeline
    listener: PassListener | None = None
    verify_each: bool = False

    def run(self, phase: str, program: P, context: PassContext) -> P:
        """Return what the passes of a phase make of `program`.

        Raises
        ------
        PipelineStopped
            If the pipeline ends with one of them.
        TileError
            Whatever passes find wrong.
        """
        for entry in self.pipeline.phase(phase):
            if all(getattr(context, name) for name in entry.when):
                program = self._ran(entry, program, context)
            if entry.name == self.pipeline.last:
                raise PipelineStopped(program)
        return program

    def _ran(self, entry: Pass, program: P, context: PassContext) -> P:
        arguments = (getattr(context, name) for name in entry.needs)
        named = {keyword: getattr(context, name) for keyword, name in entry.options}
        function = entry.function
        if self.listener is not None:
            self.listener.before_pass(entry.name, partial(_text, program))
        with timed(entry.name, "pass"):
            result: Any = function(program, *arguments, **named)
        if entry.kind != "transform":
            if entry.kind == "analysis":
                context.results[entry.name] = result
            return program
        if result is not program:
            context.changed.add(entry.name)
            if self.verify_each and isinstance(result, Kernel):
                verify(result)
        kept(entry.name, function, result)
        if self.listener is not None:
            self.listener.after_pass(entry.name, partial(_text, program), partial(_text, result))
        made: P = result
        return made


def _text(program: Kernel | Stmt) -> str:
    from tile_core.ir.printer import print_kernel, print_stmt  # for listeners alone

    return print_kernel(program) if isinstance(program, Kernel) else print_stmt(program)
