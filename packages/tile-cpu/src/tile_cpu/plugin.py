"""The CPU backend: x86-64 through LLVM in process. Its targets are spelt ``cpu[:machine]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tile_core.errors import ToolchainError
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target, parse_target_spec

if TYPE_CHECKING:
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.pipeline import Pipeline


def parse_target(spec: str) -> Target | None:
    """Claim ``cpu`` and ``cpu:<machine>``; a machine that does not exist is an error."""
    target = parse_target_spec(spec)
    if target.kind != "cpu" or target.executor:
        return None
    if target.arch:
        from tile_cpu.machine import machine

        machine(target.arch)
    return target


def rules(target: Target) -> Sequence[Rule[Any]]:
    """Return the ways the CPU runs each operator.

    Raises
    ------
    ToolchainError
        If TVM is not installed. Targets of GPUs do without.
    """
    if find_spec("tvm") is None:
        raise ToolchainError(
            "kernels for the CPU are compiled by TVM, which is not installed",
            hint="pip install 'apache-tvm>=0.27.0.post1,<0.28'",
        )
    from tile_cpu.rules import RULES

    return RULES


def pipeline(target: Target) -> Pipeline:
    """Return the passes of the CPU."""
    from tile_cpu.pipeline import PIPELINE

    return PIPELINE


def lower(kernel: Any, target: Target, options: Any) -> Any:
    """Return the kernel as one thread-level function."""
    from tile_cpu.lowering.lower import lower

    return lower(kernel, target, options)


def source(module: Any, target: Target) -> str:
    """Return the kernel as LLVM IR."""
    from tile_cpu.backend_compiler import source

    return source(module)


def compile_module(module: Any, target: Target, options: Any) -> Any:
    """Return machine code, and the C functions the kernel brought along."""
    from tile_cpu.backend_compiler import compile_kernel

    return compile_kernel(module, options)


def load(artifact: Any, kernel: Any) -> Callable[..., None]:
    """Return a function that runs the kernel on host tensors."""
    from tile_cpu.python_caller import callable_of

    return callable_of(artifact)


def export(
    artifact: Any, kernel: Any, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to call the kernel, and a shared library with its code."""
    from tile_cpu.export import export

    return export(artifact, kernel, provenance)


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return the version of TVM, which brings LLVM along, the C compiler, and the machine."""
    from tile_cpu.versions import toolchain

    return toolchain(target)


def estimate(question: Any) -> Any:
    """Return the time that a model of the processor expects of a kernel."""
    from tile_cpu.cost.model import estimate

    return estimate(question)


def peaks(target: Target, machine: str) -> Any:
    """Return what the processor at hand does at most, measured; of others, what a table says."""
    from tile_cpu.measured_peak import peaks_of

    return peaks_of(target.arch, machine)


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the CPU backend."""
    return [
        Backend(
            name="cpu",
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
            compiler="tile_cpu.tir.nodes",
        )
    ]


@hookimpl(trylast=True)
def tile_default_target() -> Target:
    """Answer ``"auto"`` when no accelerator did: there is always a CPU."""
    return Target("cpu")
