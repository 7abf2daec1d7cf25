"""A backend with mistakes in it, one for each target: what reductions are tested with.

``faulty:raises`` fails on reductions of more than 8 columns, ``faulty:wrong`` adds floats
that it should multiply, ``faulty:crashes`` kills the process that runs a branch,
``faulty:hangs`` never returns from one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tile_core.ir.expr import Binary, BinaryOp
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import If, Kernel
from tile_core.ops.reduce import Reduce
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target

NAME = "faulty"


def _wrong(node: Node) -> Node:
    if isinstance(node, Binary) and node.op is BinaryOp.MUL and node.dtype.is_float:
        return replace(node, op=BinaryOp.ADD)
    return node


def _lower(kernel: Kernel, target: Target, options: Any) -> tuple[str, Kernel]:
    from tile_toy.codegen import python

    from tile_core.passes.lower_serially import lower_serially

    for node in walk(kernel):
        if target.arch == "raises" and isinstance(node, Reduce):
            columns = (node.src.static_extents or (0,))[-1]
            if columns > 8:
                raise KeyError(f"no shuffle for {columns} columns of {node.src.buffer.name!r}")
    changed = rewrite(kernel, _wrong) if target.arch == "wrong" else kernel
    return python(lower_serially(changed)), kernel


def _compile(module: tuple[str, Kernel], target: Target, options: Any) -> tuple[Any, str]:
    text, kernel = module
    has_branch = any(isinstance(node, If) for node in walk(kernel))
    return compile(text, "<faulty>", "exec"), target.arch if has_branch else ""


def _load(artifact: tuple[Any, str], kernel: Kernel) -> Callable[..., None]:
    from tile_toy.codegen import NAMESPACE

    code, mistake = artifact
    names = dict(NAMESPACE)
    exec(code, names)

    def run(*args: Any) -> None:
        if mistake == "crashes":
            os.kill(os.getpid(), signal.SIGKILL)
        while mistake == "hangs":
            time.sleep(1)
        names["np"].errstate(all="ignore")(names["main"])(*args)

    return run


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the one backend."""
    return [
        Backend(
            name=NAME,
            parse_target=_target,
            rules=lambda target: (),
            lower=_lower,
            source=lambda module, target: module[0],
            compile=_compile,
            load=_load,
        )
    ]


def _target(spec: str) -> Target | None:
    kind, _, arch = spec.partition(":")
    return Target(NAME, arch) if kind == NAME else None


def install(folder: Path) -> str:
    """Install the plugin in `folder`; return what PYTHONPATH must hold."""
    about = folder / "faulty_backend-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty-backend\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[tile]\nfaulty = faulty_backend\n")
    (folder / "faulty_backend.py").write_text(Path(__file__).read_text())
    return str(folder)
