"""The hooks a plugin may implement, and the marker that declares an implementation.

An implementation names the arguments it wants; arguments are only ever appended here, so
older plugins keep working.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from tile_core.ir.stmt import Leaf
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.pipeline import PassRegistration
    from tile_core.plugins.backend import Backend
    from tile_core.plugins.executor import Executor
    from tile_core.target import Target

NAME = "tile"
"""The pluggy project, and the entry-point group in which plugins are found."""

hookspec = pluggy.HookspecMarker(NAME)
hookimpl = pluggy.HookimplMarker(NAME)


@hookspec
def tile_backends() -> Iterable[Backend]:  # type: ignore[empty-body]
    """Return the backends this plugin provides.

    Called once, when the first target is resolved. All results are collected; two backends
    of one name are a `PluginConflict`. Must not import a toolchain or touch a device.
    """


@hookspec
def tile_executors() -> Iterable[Executor]:  # type: ignore[empty-body]
    """Return the executors this plugin provides: who runs code in place of its machine.

    Called once, when the first target with an ``@executor`` is resolved. All results are
    collected; two executors of one name are a `PluginConflict`. Must not start a toolchain.
    """


@hookspec
def tile_operators() -> Iterable[type[Leaf]]:  # type: ignore[empty-body]
    """Return the classes of operators this plugin provides.

    Called when programs are read back, when a name of the language is not known, and for the
    conformance contract. All results are collected; two operators of one mnemonic are a
    `PluginConflict`. Machines lower their serial forms unless a rule does better.
    """


@hookspec
def tile_rules(target: Target) -> Iterable[Rule[Any]]:  # type: ignore[empty-body]
    """Return extra rules for `target`: new operators on somebody else's backend.

    Called once per target, after the backend's own rules are known. All results are
    collected, then compete by priority; two rules of one name are a `PluginConflict`.
    Must not import a toolchain or touch a device.
    """


@hookspec
def tile_passes(target: Target) -> Iterable[PassRegistration]:  # type: ignore[empty-body]
    """Return extra passes for `target`, each before or after a pass of its pipeline, by name.

    Called once per target; ``tile lower --print-pipeline`` shows the names. All results are
    collected; two passes of one name are a `PluginConflict`, and a neighbour that does not exist
    is a `PassError`. Must not import a toolchain or touch a device.
    """


@hookspec(firstresult=True)
def tile_default_target() -> Target | None:
    """Return the target meant by ``"auto"``, or None to pass.

    Called each time ``"auto"`` is resolved; stops at the first answer. The GPU backends
    answer when a device is present; the CPU backend is marked ``trylast`` and always
    answers. May probe devices.
    """


@hookspec
def tile_before_pass(name: str, text: str) -> None:
    """Observe that the pass `name` is about to run on the program printed as `text`.

    Called around every pass of the pipeline that changes programs. Programs are printed only if
    somebody listens. Return values are ignored.
    """


@hookspec
def tile_after_pass(name: str, before: str, after: str) -> None:
    """Observe the pass `name`: the program's text on both sides. Return values are ignored."""


@hookspec
def tile_kernel_built(report: Mapping[str, Any]) -> None:
    """Observe a finished kernel.

    Called once per kernel that was compiled rather than found in a cache. `report` holds
    ``name``, ``target`` and ``phases_ms``, a mapping from phase to milliseconds; backends
    may add what their compiler tells, such as ``registers``. Return values are ignored.
    """
