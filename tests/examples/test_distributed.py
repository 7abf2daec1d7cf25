"""Examples for several ranks: two processes that end by themselves, or are ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from support.example_files import DISTRIBUTED, EXAMPLES


def ranks(name: str, count: int) -> list[str]:
    """Return what the ranks of an example say."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": "1", "TILE_INTERPRET": "1",
    }  # fmt: skip
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    started = [
        subprocess.Popen(
            command, env=os.environ | told | {"RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=300) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [process.returncode for process in started] == [0] * count, said
    return [out for out, _ in said]


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_two_ranks_agree_with_one(name: str) -> None:
    first, second = ranks(name, 2)
    assert first.endswith("on 2 ranks: agrees with one\n")
    assert second == ""
