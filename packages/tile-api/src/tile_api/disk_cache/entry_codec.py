"""From a compiled kernel to an entry of the cache, and back.

Entries hold no places: the same kernel may have been moved to another line or file since it was
compiled. What fails is found again in the program at hand by what it is: the assertion by its text,
a launch or a condition of the host by its number among its kind, a parameter by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from tile_api.disk_cache.entry import Entry
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Built, Lowered
from tile_core.crash import guarded
from tile_core.errors import Span, TileError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.names import Names
from tile_core.ir.node import walk
from tile_core.ir.print_expr import print_expr
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Check, Kernel
from tile_core.ir.stmt import Launch as LaunchStatement
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.target import Target
from tile_launch.manifest import Launch, Manifest

if TYPE_CHECKING:
    from tile_core.passes.layout_report import LayoutReport
    from tile_core.remarks import Remark
    from tile_launch.bundle import Variant

_CHEAP_TEXTS = ("planned", "pipelined", "lowered", "source")


def can_be_kept(kernel: Kernel, target: Target, backend: Backend, options: BuildOptions) -> bool:
    """Whether a kernel is worth an entry: it is machine code, and a launcher alone can run it.

    Emulated kernels are not: their library lies in the emulator's own cache, and what they need
    beside it is made again without TVM. Where the number of threads is asked for, compiling
    sets it for the process. Elements of four bits travel through copies on the processor.
    """
    packed = any(isinstance(p, Buffer) and p.dtype.packing > 1 for p in kernel.params)
    is_machine_code = backend.export is not None and not target.executor
    return is_machine_code and not options.threads and not (packed and target.kind == "cpu")


def entry_of(built: Built, key: str) -> Entry:
    """Return a compiled kernel as the cache keeps it.

    Texts of GPU kernels are at hand and go with it; those of the CPU cost as much as compiling.
    """
    from tile_api.variants import variant_of
    from tile_launch.manifest_json import text_of_manifest

    variant = variant_of(built, built.artifact)
    texts = {}
    if variant.manifest.machine.family != "cpu":
        texts = {stage: built.text(stage) for stage in _CHEAP_TEXTS}
        with suppress(TileError):
            texts["asm"] = built.asm()
    spent, text = round(sum(built.phases_ms.values()), 1), text_of_manifest(variant.manifest)
    return Entry(key, built.kernel.name, str(built.target), spent, text, variant.code, texts)


class CachedBuild:
    """A kernel out of the cache: has what `tile_core.compilation.results.Built` has.

    It runs as it is, and `kernel` is the program at hand: messages show its lines. What an entry
    does not hold, such as layouts or LLVM IR, is made when it is asked for, by compiling as far as
    that takes.
    """

    def __init__(
        self,
        entry: Entry,
        kernel: Kernel,
        resolved: tuple[Backend, Target],
        options: BuildOptions,
        host: PluginHost,
        executable: Callable[..., None],
        phases_ms: Mapping[str, float],
    ) -> None:
        self.kernel = kernel
        self.backend, self.target = resolved
        self.executable, self.phases_ms = executable, phases_ms
        self.entry, self._asked, self.host = entry, options, host

    @property
    def runs_on_host(self) -> bool:
        """Whether the kernel works on tensors in host memory."""
        return self.target.runs_on_host

    @property
    def variant(self) -> Variant:
        """The kernel as bundles hold it, as it was kept."""
        return _variant_of(self.entry)

    @cached_property
    def lowered(self) -> Lowered:
        """The kernel, brought to thread-level code again."""
        from tile_core import driver  # which a kernel that is only called does not need

        return driver.lower(self.kernel, self.target, self.host, self._asked)

    @cached_property
    def artifact(self) -> Any:
        """What the backend's toolchain makes of it, made again."""
        lowered = self.lowered
        with guarded(self.kernel, self.target, "compile", lowered.options.compile_flags):
            return self.backend.compile(lowered.module, lowered.target, lowered.options)

    @property
    def options(self) -> BuildOptions:
        """What the user asked for, with the rules of the target."""
        return self.lowered.options

    @property
    def planned(self) -> Kernel:
        """The kernel after the passes on tile IR."""
        return self.lowered.planned

    @property
    def module(self) -> Any:
        """What the backend's `lower` returned."""
        return self.lowered.module

    def text(self, stage: str) -> str:
        """Return the program as text, as it was kept or made again."""
        if stage == "tile":
            return print_kernel(self.kernel)
        kept = self.entry.texts.get(stage)
        return self.lowered.text(stage) if kept is None else kept

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What passes said of their choices when the kernel was lowered again.

        What the target's compiler said is not among them: it did not run again.
        """
        return self.lowered.remarks

    def layouts(self) -> LayoutReport:
        """Return how each tile is stored, and who asked for that."""
        return self.lowered.layouts()

    def asm(self) -> str:
        """Return the machine's assembly.

        Raises
        ------
        UnsupportedOnTarget
            If the backend's artifact cannot show it.
        """
        kept = self.entry.texts.get("asm")
        if kept is not None:
            return kept
        show = getattr(self.artifact, "asm", None)
        if show is None:
            raise UnsupportedOnTarget(
                f"{self.backend.name} kernels have no assembly to show",
                hint="print the source: kernel.get_kernel_source()",
            )
        return str(show())


Build: TypeAlias = Built | CachedBuild
"""A kernel ready to run: built here, or out of the cache on disk."""


def executable_of(entry: Entry, kernel: Kernel) -> Callable[..., None]:
    """Return what runs an entry on checked arguments, one for each parameter.

    The code for a GPU is loaded at the first call, as that of a kernel that was just compiled.
    """
    from tile_api.disk_cache.entry_codec import teller
    from tile_launch.loading import runner_of

    variant = _variant_of(entry)
    told = teller(kernel, variant.manifest)
    if variant.manifest.machine.family == "cpu":
        return runner_of(variant, told)
    made: list[Callable[..., None]] = []

    def run(*args: Any) -> None:
        if not made:
            made.append(_started(variant, told))
        made[0](*args)

    return run


def error_of(entry: Entry, kernel: Kernel, fault: TileError) -> TileError:
    """Return what a launcher of an entry complains of, with a place in `kernel`."""
    from tile_api.disk_cache.entry_codec import teller

    return teller(kernel, _variant_of(entry).manifest)(fault)


def _variant_of(entry: Entry) -> Variant:
    from tile_launch.bundle import Variant
    from tile_launch.manifest_json import parse_manifest

    manifest = parse_manifest(entry.manifest.encode(), "an entry of the cache")
    return Variant(manifest, entry.code)


def _started(variant: Variant, told: Callable[[Any], TileError]) -> Callable[..., None]:
    from tile_launch.loading import runner_of

    try:
        return runner_of(variant, told)
    except TileError as fault:
        raise told(fault) from None


def teller(kernel: Kernel, manifest: Manifest) -> Callable[[TileError], TileError]:
    """Return what gives errors of a launcher their place in `kernel`."""

    def told(error: TileError) -> TileError:
        match error.subject:
            case ("failure", int() as number):
                error.span = _assertion(kernel, manifest, number)
            case ("step", int() as number):
                error.span = _step(kernel, manifest, number)
            case ("parameter", str() as name):
                from tile_core.plugins.launch_errors import point_at_parameter

                point_at_parameter(error, kernel, name)
        return error

    return told


def _assertion(kernel: Kernel, manifest: Manifest, number: int) -> Span | None:
    """Return where the assertion stands that failed: the n-th with its text."""
    if not 0 <= number < len(manifest.failures):
        return None
    text = manifest.failures[number]
    nth = manifest.failures[:number].count(text)
    found = [
        node.span
        for node in walk(kernel)
        if isinstance(node, Check) and text in (node.message, print_expr(node.cond, Names()))
    ]
    return found[min(nth, len(found) - 1)] if found else None


def _step(kernel: Kernel, manifest: Manifest, number: int) -> Span | None:
    """Return where a step of the host stands; several may come from one launch."""
    if not 0 <= number < len(manifest.steps):
        return None
    step = manifest.steps[number]
    if isinstance(step, Launch):
        launches = [n.span for n in walk(kernel) if isinstance(n, LaunchStatement)]
        nth = sum(isinstance(s, Launch) for s in manifest.steps[:number])
        return launches[min(nth, len(launches) - 1)] if launches else None
    message = getattr(step, "message", "")
    for node in walk(kernel):
        if isinstance(node, Check) and node.message and node.message in message:
            return node.span
    return kernel.span
