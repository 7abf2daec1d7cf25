"""The process that tries kernels, which may take it down: ``python -m tile_api.reducing.worker``.

It reads pickled pairs of kernel and plan from its standard input, and writes pickled pairs, each
after its length, to what was its standard output: ``("phase", name)`` while it works, and one
``("done", outcome)``.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from typing import Any, BinaryIO

LENGTH = 8
"""Bytes that tell the length of a message, the lowest first."""


def main() -> int:
    """Serve until the input ends; what kernels print goes nowhere."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    warnings.simplefilter("ignore")
    from tile_api.compiling import default_host
    from tile_api.reducing.trial import try_kernel

    host = default_host()
    while True:
        try:
            kernel, plan = pickle.load(requests)
        except EOFError:
            return 0
        outcome = try_kernel(kernel, plan, host, lambda name: _send(answers, ("phase", name)))
        _send(answers, ("done", outcome))


def _send(pipe: BinaryIO, message: Any) -> None:
    packed = pickle.dumps(message)
    pipe.write(len(packed).to_bytes(LENGTH, "little") + packed)
    pipe.flush()


if __name__ == "__main__":
    raise SystemExit(main())
