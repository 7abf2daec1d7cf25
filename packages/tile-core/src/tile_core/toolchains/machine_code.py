"""From the printed text of a kernel to machine code for one architecture, by any compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tile_core.codegen.compiler_diagnostics import line_of_kernel
from tile_core.codegen.source import PrintedSource
from tile_core.errors import ToolchainCrash, ToolchainError
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed
from tile_core.remarks import warn as tell
from tile_core.simt.resources import Resources
from tile_core.toolchains.compiler import Compiler, Output


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code of one translation unit.

    `assembly` has the instructions that it was made from; those of the virtual machine, if
    there is one. `resources` tells what each kernel needs, by its symbol, and `log` all that
    the compiler said.
    """

    arch: str
    code: bytes
    assembly: str
    resources: Mapping[str, Resources]
    compiler: str
    log: str


@dataclass(frozen=True, slots=True)
class MachineCode:
    """How machine code of one maker's GPUs is made and understood.

    Parameters
    ----------
    slower
        The flag that turns most of the optimisation off.
    refusal
        ``refusal(source, log, compiler, arch)`` returns the error that a text was refused.
    resources
        Returns what each kernel of an output needs, by its symbol.
    warnings_of
        Returns what the user is told of these needs.
    again
        Returns flags with which a kernel has to be compiled once more, mostly none.
    """

    slower: str
    refusal: Callable[[PrintedSource, str, str, str], ToolchainError]
    resources: Callable[[Output], Mapping[str, Resources]]
    warnings_of: Callable[[Resources], Iterable[str]]
    again: Callable[[Output], tuple[str, ...]] = lambda output: ()

    def compile(
        self,
        compiler: Compiler,
        source: PrintedSource,
        text: str,
        arch: str,
        flags: Sequence[str],
        *,
        warn: bool = True,
    ) -> Compiled:
        """Compile kernels for `arch`.

        The compiler is given `text` for `source`. `warn` tells of `warnings_of`, as a
        `TileWarning` at the line of the kernel.

        Raises
        ------
        ToolchainError
            If the compiler refuses the text: at the user's line that the first refused line was
            printed for, with the compiler's words.
        ToolchainCrash
            If it crashes, also when it optimises less, or does not come to an end.
        """
        log("toolchain", lambda: f"{compiler.name} translates a kernel for {arch}")
        with timed(compiler.name, "tool", arch=arch):
            output = self._built(compiler, source, text, arch, flags)
        if not output.is_accepted:
            raise self.refusal(source, output.log, compiler.name, arch)
        if more := self.again(output):
            with timed(compiler.name, "tool", arch=arch):
                output = compiler.build(text, arch, (*flags, *more))
        resources = self.resources(output)
        for name, needs in resources.items() if warn else ():
            for told in self.warnings_of(needs):
                _tell(source, name, told)
        return Compiled(arch, output.code, output.assembly, resources, compiler.name, output.log)

    def _built(
        self, compiler: Compiler, source: PrintedSource, text: str, arch: str, flags: Sequence[str]
    ) -> Output:
        """Compile; after a crash once more, with less optimisation.

        Optimisers crash where the front end has seen nothing wrong. That of one maker's assembler
        does over a loop that never ends behind another loop, as in::

            for i in T.Parallel(n): ...
            while n > 0: ...  # n is never changed; with n = 0 the program is fine
        """
        try:
            return compiler.build(text, arch, flags)
        except ToolchainCrash as crash:
            try:
                output = compiler.build(text, arch, (*flags, self.slower))
            except ToolchainError:
                raise crash from None
            told = crash.message.splitlines()[0].rstrip(":")
            name = next(iter(source.entry_points), "")
            _tell(source, name, f"{told}; compiled with {self.slower}, the kernel is slow")
            return output


def _tell(source: PrintedSource, kernel: str, text: str) -> None:
    tell(text, source.span_at(line_of_kernel(source, kernel)), pass_name="compile_source")
