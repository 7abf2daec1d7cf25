"""The record that describes a backend: data and functions, no base class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.cost.cost_request import CostQuestion
    from tile_core.cost.estimate import Estimate
    from tile_core.cost.roofline import Peaks
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.pipeline import Pipeline
    from tile_core.target import Target

API_VERSION = 2
"""Raised whenever a field of `Backend` changes its meaning; appended fields do not raise it."""


def default_pipeline(target: Target) -> Pipeline:
    """Return the passes that suit every machine."""
    from tile_core.passes.default_pipeline import DEFAULT_PIPELINE

    return DEFAULT_PIPELINE


def no_toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Tell of no tool: the backend's package alone decides what it makes."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One kind of machine: how its targets are spelt, and each stage of the compiler it owns.

    Describing a backend must cost nothing: toolchains, drivers and TVM are imported inside
    the functions, never by the module that builds the record.

    Parameters
    ----------
    name
        The kind of target it serves, such as ``"cpu"``; unique among installed backends.
    parse_target
        ``parse_target(spec)`` receives a target in canonical spelling,
        ``kind[:arch][@executor]``. It returns the target with whatever the backend adds to
        it, or None if the kind or the executor is somebody else's. It raises `TargetError`
        if the kind is its own and the architecture does not exist.
    rules
        ``rules(target)`` returns the ways to run each operator. One rule is selected for
        an operator, once, and serves layout inference and lowering.
    lower
        ``lower(kernel, target, options) -> module``: the kernel, its operators still whole,
        becomes thread-level code in a form of the backend's choice.
    source
        ``source(module, target) -> str``: the module as text that people can read.
    compile
        ``compile(module, target, options) -> artifact`` runs the toolchain. The artifact
        holds everything that `load` needs.

        Raises `ToolchainError` with the compiler's output.
    load
        ``load(artifact, kernel) -> executable``: a callable that launches the kernel on
        arguments that were checked, one per parameter, outputs among them, and returns
        None. It may touch the device.

        Raises `MissingFeature` if this machine lacks instructions that the artifact uses.
    pipeline
        ``pipeline(target)`` returns the passes on the way to a module, as data: those of the
        phase ``"tile"`` run on the whole kernel before `lower`, which runs the phases that the
        backend has itself, with ``options.passes``. By default, ranges of threads are named, and
        the accesses of explicit programs of threads get the barriers that they need.
    export
        ``export(artifact, kernel, provenance) -> (manifest, code)``: what a host must know to
        run `kernel`, as data in the form of `tile_launch.manifest_json`, and the machine code.
        None if kernels of the backend cannot be saved.

        Raises `ToolchainError` if a tool is missing.
    toolchain
        ``toolchain(target, options)`` names everything outside the backend's own package that
        decides what `compile` makes, with versions: compilers, and the machine at hand where
        the target does not name one. It runs whenever a kernel is looked up, so it is quick,
        and loads no TVM.
    estimate
        ``estimate(question)`` returns the time that a model of the machine expects of a kernel,
        with its parts, before anything was compiled: see `tile_core.cost`. Kernels that cannot
        be lowered are refused as `lower` refuses them. None: the backend has no model, and a
        cautious one is used that says so.
    peaks
        ``peaks(target, machine)`` returns what a machine does at most: measured, where it is the
        one at hand, else out of a table, in which `machine` names a row. It may take a second.
        None: nobody knows.
    accumulator_memory
        Targets whose matrix unit has memory of its own, for tiles of `Scope.ACCUMULATOR`:
        ``kind:arch``, or the kind where all of them have. Others are refused such tiles.
    compiler
        The module whose import takes long and is needed before `lower` and `compile` can run, such
        as a binding of LLVM. Whoever finds it imported knows that compiling starts at once.
        Empty if everything they need is imported in no time.
    api_version
        The `API_VERSION` the backend was written against. The host refuses others.
    """

    name: str
    parse_target: Callable[[str], Target | None]
    rules: Callable[[Target], Sequence[Rule[Any]]]
    lower: Callable[..., Any]
    source: Callable[..., str]
    compile: Callable[..., Any]
    load: Callable[..., Callable[..., None]]
    pipeline: Callable[[Target], Pipeline] = default_pipeline
    api_version: int = API_VERSION
    export: Callable[..., tuple[dict[str, Any], bytes]] | None = None
    toolchain: Callable[[Target, Any], Mapping[str, str]] = no_toolchain
    estimate: Callable[[CostQuestion], Estimate] | None = None
    peaks: Callable[[Target, str], Peaks] | None = None
    compiler: str = ""
    accumulator_memory: tuple[str, ...] = ()
