"""The process that tries kernels, and may go down: ``python -m tile_api.reducing.worker PARENT``.

It reads pickled pairs of kernel and plan from its standard input, and writes pickled pairs, each
after its length, to what was its standard output: ``("phase", name)`` while it works, and one
``("done", outcome)``.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from tile_core.toolchains.subprocesses import end_with_parent, ended_with

if TYPE_CHECKING:
    from tile_core.plugins.host import PluginHost

LENGTH = 8
"""Bytes that tell the length of a message, the lowest first."""

LOST = "lost"
"""What is said, with the name of a signal, of a process that crashed; another one is there."""

READY = "ready"
"""The phase of a process that has imported what it needs, and waits for kernels."""


def main(parent: int) -> int:
    """Serve the process called `parent` until the input ends; what kernels print goes nowhere.

    Kernels are tried in a fork, so that a fresh one is there at once when one of them crashes.
    """
    end_with_parent(parent)
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    warnings.simplefilter("ignore")
    from tile_core.plugins.host import default_host

    for name in ("tile_api.reducing.trial", "tile_core.testing.oracle"):
        import_module(name)  # forks have them
    host = default_host()
    _send(answers, ("phase", READY))
    server = os.getpid()
    while hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            end_with_parent(server)
            break
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return 0
        _send(answers, (LOST, ended_with(status)))
    return _serve(host, answers)


def _serve(host: PluginHost, answers: BinaryIO) -> int:
    from tile_api.reducing.trial import try_kernel

    while True:
        try:
            kernel, plan = pickle.load(sys.stdin.buffer)
        except EOFError:
            return 0
        outcome = try_kernel(kernel, plan, host, lambda name: _send(answers, ("phase", name)))
        _send(answers, ("done", outcome))


def _send(pipe: BinaryIO, message: Any) -> None:
    packed = pickle.dumps(message)
    pipe.write(len(packed).to_bytes(LENGTH, "little") + packed)
    pipe.flush()


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
