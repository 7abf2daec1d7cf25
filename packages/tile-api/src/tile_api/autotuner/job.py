"""What a worker compiles: tile IR and options, in a file; nothing of the user's is in it.

Kernels are traced where the user's functions are. What crosses to other processes is tile IR,
which consists of classes of the compiler alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tile_core.ir.stmt import Kernel


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel with its outputs, and what `tile_api.compile` takes beside it."""

    kernel: Kernel
    target: str
    pass_configs: Mapping[str, object] = field(default_factory=dict)
    compile_flags: Sequence[str] = ()

    def write(self, path: Path) -> None:
        """Put the job into a file."""
        path.write_bytes(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))

    @staticmethod
    def read(path: str | Path) -> Job:
        """Return the job of a file that a process of the same user wrote a moment ago."""
        found = pickle.loads(Path(path).read_bytes())
        assert isinstance(found, Job), f"{path} holds a job"
        return found

    def compiled(self) -> Any:
        """Return the kernel, compiled or out of the cache."""
        from tile_api.compiling import compile

        return compile(
            self.kernel,
            target=self.target,
            pass_configs=self.pass_configs or None,
            compile_flags=list(self.compile_flags) or None,
        )
