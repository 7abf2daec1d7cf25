"""The record that describes a backend: data and functions, no base class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_core.ops.rule import Rule
    from tile_core.passes.insertion import Insertion
    from tile_core.target import Target

API_VERSION = 1
"""Raised whenever a field of `Backend` changes its meaning; appended fields do not raise it."""


def no_passes(target: Target) -> Sequence[Insertion]:
    """Add no passes: the pipeline as it stands suits the backend."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One kind of machine: how its targets are spelt, and each room of the house it owns.

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
        ``lower(program, target, options)`` turns thread-level TIR into the form that is
        compiled, whose ``str`` people can read: source text, or TIR ready for LLVM.
    compile
        ``compile(lowered, target, options)`` runs the toolchain and returns the artifact:
        bytes with everything that `load` needs, fit for a cache on disk.

        Raises `ToolchainError` with the compiler's output.
    load
        ``load(artifact, target, options)`` returns the callable that launches the kernel on
        checked arguments. It may touch the device.

        Raises `MissingFeature` if this machine lacks instructions that the artifact uses.
    passes
        ``passes(target)`` returns insertions at named points of the pipeline.
    api_version
        The `API_VERSION` the backend was written against. The host refuses others.
    """

    name: str
    parse_target: Callable[[str], Target | None]
    rules: Callable[[Target], Sequence[Rule[Any]]]
    lower: Callable[..., Any]
    compile: Callable[..., Any]
    load: Callable[..., Any]
    passes: Callable[[Target], Sequence[Insertion]] = no_passes
    api_version: int = API_VERSION
