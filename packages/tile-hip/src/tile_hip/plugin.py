"""The HIP backend. Its targets are spelt ``hip[:gfxXXX]``; ``@sim`` runs them anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.ops.rule import Rule
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target, parse_target_spec

if TYPE_CHECKING:
    from tile_core.pass_manager.pipeline import Pipeline


def parse_target(spec: str) -> Target | None:
    """Claim ``hip`` and ``hip:gfxXXX``; an architecture that does not exist is an error."""
    target = parse_target_spec(spec)
    if target.kind != "hip" or target.executor:
        return None
    if target.arch:
        from tile_hip.machine import machine

        machine(target.arch)
    return target


def rules(target: Target) -> Sequence[Rule[Any]]:
    """Return the ways AMD GPUs run each operator."""
    from tile_hip.rules import all_rules

    return all_rules(target)


def pipeline(target: Target) -> Pipeline:
    """Return the passes of GPUs, and those that AMD's add."""
    from tile_hip.pipeline import PIPELINE

    return PIPELINE


def lower(kernel: Any, target: Target, options: Any) -> Any:
    """Return the kernel as functions of single threads."""
    from tile_hip.stages import lower

    return lower(kernel, target, options)


def source(module: Any, target: Target) -> str:
    """Return the kernel as HIP C++."""
    from tile_core.codegen import print_program

    return print_program(module).text


def compile_module(module: Any, target: Target, options: Any) -> Any:
    """Return machine code for the architecture, and what the compiler told about it."""
    from tile_hip.stages import compile_program

    return compile_program(module, target, options)


def load(artifact: Any, kernel: Any) -> Callable[..., None]:
    """Return a function that launches the kernel on tensors of a GPU."""
    from tile_hip.stages import load

    return load(artifact, kernel)


def export(
    artifact: Any, kernel: Any, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to launch the kernel, and its machine code."""
    from tile_hip.stages import export

    return export(artifact, kernel, provenance)


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return the architecture that is meant, and the compiler that would translate for it."""
    from tile_hip.versions import toolchain

    return toolchain(target, options)


def estimate(question: Any) -> Any:
    """Return the time that a model of the GPU expects of a kernel."""
    from tile_hip.stages import estimate

    return estimate(question)


def peaks(target: Target, machine: str) -> Any:
    """Return what the maker of the GPU states that it does at most."""
    from tile_core.cost.gpu_peaks import peaks_of
    from tile_core.cost.gpu_speeds import speeds_of
    from tile_hip.speeds import PRODUCTS

    return peaks_of(speeds_of(PRODUCTS, target.arch, machine))


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the HIP backend."""
    return [
        Backend(
            name="hip",
            parse_target=parse_target,
            rules=rules,
            lower=lower,
            source=source,
            compile=compile_module,
            load=load,
            pipeline=pipeline,
            export=export,
            toolchain=toolchain,
            estimate=estimate,
            peaks=peaks,
        )
    ]


@hookimpl
def tile_default_target() -> Target | None:
    """Answer ``"auto"`` with the first GPU of this machine, if there is one."""
    from tile_core.errors import MissingFeature
    from tile_hip.driver import device_arch

    try:
        return Target("hip", device_arch())
    except MissingFeature:
        return None
