"""The toy backend: kernels become plain Python. Its target is spelt ``toy``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target


def lower(kernel: Any, target: Target, options: Any) -> str:
    """Return the kernel as the text of a Python module."""
    from tile_core.passes.lower_serially import lower_serially
    from tile_toy.codegen import python

    return python(lower_serially(kernel))


def load(artifact: Any, kernel: Any) -> Callable[..., None]:
    """Return the module's function."""
    from tile_toy.codegen import NAMESPACE

    names = dict(NAMESPACE)
    exec(artifact, names)
    main: Callable[..., None] = names["np"].errstate(all="ignore")(names["main"])
    return main


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the one backend."""
    return [
        Backend(
            name="toy",
            parse_target=lambda spec: Target("toy") if spec == "toy" else None,
            rules=lambda target: (),
            lower=lower,
            source=lambda module, target: module,
            compile=lambda module, target, options: compile(module, "<toy>", "exec"),
            load=load,
        )
    ]
