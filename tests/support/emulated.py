"""Kernels of tests/unit/tile_sim/kernels on the emulator, as they are and broken in one place."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tile_sim.call_report import SimReport
from tile_sim.sources import SourceKernel
from tile_sim.tensor_maps import Boxes

FOLDER = Path(__file__).parents[1] / "unit" / "tile_sim" / "kernels"
Change = Callable[[str], str]


@dataclass(frozen=True)
class Program:
    """A kernel, arguments for it, and what it computes.

    Parameters
    ----------
    arguments
        Makes fresh arguments by name, arrays or boxes of them; outputs are poisoned.
    """

    file: str
    name: str
    grid: tuple[int, ...]
    block: int
    shared: int
    arguments: Callable[[], dict[str, Any]]
    output: str  # the argument that the kernel writes, and `expected` computes from the others
    expected: Callable[..., np.ndarray]
    warp_size: int = 32  # 32, or 64 as on AMD's machines

    def run(self, change: Change | None = None) -> SimReport:
        """Run the text, changed or not, and check the result."""
        text = source(self.file)
        if change is not None:
            before, text = text, change(text)
            assert text != before
            assert text.count("\n") == before.count("\n")
        linecache.cache[self.file] = (len(text), None, text.splitlines(True), self.file)
        kernel = SourceKernel(
            text,
            self.name,
            block=self.block,
            shared_bytes=self.shared,
            warp_size=self.warp_size,
            file=self.file,
        )
        arguments = self.arguments()
        report = kernel(self.grid, **arguments)
        plain = {k: v.array if isinstance(v, Boxes) else v for k, v in arguments.items()}
        output = plain.pop(self.output)
        np.testing.assert_array_equal(output, self.expected(**plain))
        return report


def source(file: str) -> str:
    """Return the text of a kernel."""
    return (FOLDER / file).read_text()


def line_of(file: str, marker: str) -> int:
    """Return the number of the line that ends with the comment `marker`."""
    (number,) = [
        n for n, line in enumerate(source(file).splitlines(), 1) if line.endswith(f"// {marker}")
    ]
    return number


def without(marker: str) -> Change:
    """Return a change that leaves out the lines that end with the comment `marker`."""
    return replacing(marker, None, "")


def replacing(marker: str, old: str | None, new: str) -> Change:
    """Return a change of the lines that end with `marker`: `old`, or all of them, to `new`."""

    def change(text: str) -> str:
        return "".join(
            (new + "\n" if old is None else line.replace(old, new))
            if line.endswith(f"// {marker}\n")
            else line
            for line in text.splitlines(keepends=True)
        )

    return change


def whole(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Return small whole numbers: sums and products of them are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def poison(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.full(np.prod(shape) * np.dtype(dtype).itemsize, 0xFF, "u1").view(dtype).reshape(shape)


def _reversed(A: np.ndarray, n: Any) -> np.ndarray:
    padded = np.zeros(256, np.float32)
    padded[: len(A)] = A
    return padded.reshape(2, 128)[:, ::-1].ravel()[: len(A)]


EXCHANGE = Program(
    "exchange.cu", "exchange", (2,), 128, 512,
    lambda: {"A": whole(200), "B": poison(200), "n": 200},
    "B", _reversed,
)  # fmt: skip

GEMM = Program(
    "gemm.cu", "gemm", (3, 2), 64, 12288,
    lambda: {"A": whole(64, 192, dtype="float16"), "B": whole(48, 192, dtype="float16", seed=1),
             "C": poison(64, 48), "N": 48, "K": 192},
    "C", lambda A, B, N, K: A.astype(np.float32) @ B.astype(np.float32).T,
)  # fmt: skip

PAIRS = Program(
    "mistakes.cu", "pairs", (1,), 32, 256,
    lambda: {"A": np.arange(32, dtype=np.int32), "B": poison(32, dtype="int32")},
    "B", lambda A: A.reshape(16, 2)[:, ::-1].ravel(),
)  # fmt: skip

SUMS = Program(
    "mistakes.cu", "sums", (1,), 32, 0,
    lambda: {"A": whole(128), "B": poison(128)}, "B", lambda A: A,
)  # fmt: skip

BRANCHES = Program(
    "mistakes.cu", "branches", (1,), 128, 512,
    lambda: {"B": poison(128, dtype="int32")},
    "B", lambda: np.repeat([2, 1], 64).astype(np.int32),
)  # fmt: skip

HALVES = Program(
    "mistakes.cu", "halves", (1,), 128, 512,
    lambda: {"B": poison(64, dtype="int32")},
    "B", lambda: np.arange(64, dtype=np.int32)[::-1],
)  # fmt: skip

VECTORS = Program(
    "mistakes.cu", "vectors", (1,), 32, 544,
    lambda: {"A": whole(128), "B": poison(128)}, "B", lambda A: A,
)  # fmt: skip

BLOCKS = Program(
    "mistakes.cu", "blocks", (4,), 32, 0,
    lambda: {"B": poison(4, dtype="int32")}, "B", lambda: np.arange(4, dtype=np.int32),
)  # fmt: skip

TALKS = Program(
    "mistakes.cu", "talks", (1,), 16, 0,
    lambda: {"A": np.arange(16, dtype=np.int32), "limit": 16}, "A",
    lambda limit: np.arange(16, dtype=np.int32),
)  # fmt: skip

FLAGS = Program(
    "mistakes.cu", "flags", (1,), 64, 0,
    lambda: {"flag": np.zeros(1, np.int32), "B": poison(64, dtype="int32")},
    "B", lambda flag: np.arange(64, dtype=np.int32),
)  # fmt: skip

PROGRAMS = (EXCHANGE, GEMM, PAIRS, SUMS, BRANCHES, HALVES, VECTORS, BLOCKS, TALKS)
