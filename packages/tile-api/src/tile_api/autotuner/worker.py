"""The process that compiles, checks and times candidates; it may be killed at any moment.

It reads requests and writes replies, a line of JSON each. Whatever kernels print goes nowhere,
and whoever waits for a reply that does not come kills the process and starts another.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from typing import IO, Any

from tile_api.autotuner.bench import Bench
from tile_api.autotuner.process import failure
from tile_core.toolchains.subprocesses import end_with_parent


def main(parent: int) -> None:
    """Serve the process called `parent` until it closes its end."""
    end_with_parent(parent)
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    serve(sys.stdin, replies, Bench())


def serve(requests: IO[str], replies: IO[str], bench: Bench) -> None:
    """Answer every request of a stream."""
    for line in requests:
        replies.write(json.dumps(answer(bench, json.loads(line))) + "\n")
        replies.flush()


def answer(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to one request; what goes wrong is part of it."""
    start = time.perf_counter()
    arguments = {k: v for k, v in request.items() if k != "do"}
    try:
        found = getattr(bench, request["do"])(**arguments)
    except BaseException as error:
        return failure(error)
    return {"ok": True, "took": time.perf_counter() - start, **found}
