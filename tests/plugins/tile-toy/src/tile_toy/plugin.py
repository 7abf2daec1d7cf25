"""The toy backend: kernels become plain Python. Its target is spelt ``toy``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target


def lower(kernel: Any, target: Target, options: Any) -> str:
    """Return the kernel as the text of a Python module."""
    from tile_toy.codegen import python

    return python(kernel)


def load(artifact: Any, kernel: Any) -> Any:
    """Return the module's function."""
    from tile_toy.codegen import NAMESPACE

    exec(artifact, names := dict(NAMESPACE))
    return names["np"].errstate(all="ignore")(names["main"])


@hookimpl
def tile_backends() -> Iterator[Backend]:
    """Provide the one backend."""
    yield Backend(
        name="toy",
        parse_target=lambda spec: Target("toy") if spec == "toy" else None,
        rules=lambda target: (),
        lower=lower,
        source=lambda module, target: module,
        compile=lambda module, target, options: compile(module, "<toy>", "exec"),
        load=load,
    )


@hookimpl
def tile_passes(target: Target) -> Any:
    """Write operators out as loops, last of all."""
    from tile_core.pass_manager.pipeline import Pass, PassRegistration

    serially = Pass(name="lower_serially", run="tile_core.passes.lower_serially:lower_serially")
    return [PassRegistration(entry=serially, after="order_threads")] * (target.kind == "toy")
