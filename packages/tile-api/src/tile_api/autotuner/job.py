"""What crosses to workers, in files: kernels to compile, and tensors to run them on.

Kernels are traced where the user's functions are. What crosses to other processes is tile IR,
which consists of classes of the compiler alone. A file of tensors is a line of JSON that describes
all arguments, and then their bytes. Arrays keep their strides; whoever reads gets NumPy arrays on
memory of its own.
"""

from __future__ import annotations

import json
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


def compiled_entry(job: Job) -> tuple[str, bytes] | None:
    """Compile a job where it was sent; return what the cache keeps of it, under which digest.

    None where it keeps nothing, as of kernels for emulators.
    """
    kernel = job.compiled()
    sent = kernel.__reduce__()[1][0]  # as it would travel by itself: with what the cache keeps
    return None if sent.entry is None else (kernel.compile_key().digest, sent.entry)


def write_tensors(path: Path, values: Sequence[Any]) -> None:
    """Write arguments: NumPy arrays, torch tensors, plain numbers and None."""
    head, blobs = [], []
    for value in values:
        array = as_array(value)
        if array is None:
            plain = value.item() if hasattr(value, "item") else value
            head.append({"value": plain})
            continue
        base = _span_of(array)
        head.append(
            {
                "dtype": array.dtype.name,
                "shape": array.shape,
                "strides": array.strides,
                "size": len(base),
            }
        )
        blobs.append(base)
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        file.writelines(blobs)


def read_tensors(path: Path | str) -> list[Any]:
    """Return the arguments of a file."""
    import numpy as np

    with open(path, "rb") as file:
        head = json.loads(file.readline())
        found: list[Any] = []
        for row in head:
            if "value" in row:
                found.append(row["value"])
                continue
            memory = bytearray(file.read(row["size"]))
            dtype = _dtype(row["dtype"])
            found.append(np.ndarray(row["shape"], dtype, memory, 0, row["strides"]))
    return found


def as_array(value: Any) -> Any:
    """Return a NumPy array with a tensor's elements and strides; None for what is no tensor."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value) if any(s < 0 for s in value.strides) else value
    if hasattr(value, "detach"):
        from tile_api.tensors import array_of

        return array_of(value)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        return np.from_dlpack(value)
    return None


def _dtype(name: str) -> Any:
    import numpy as np

    try:
        return np.dtype(name)
    except TypeError:
        from tile_core.dtypes import dtype_of

        return dtype_of(name).numpy()


def _span_of(array: Any) -> bytes:
    """Return the bytes from an array's first element to its last."""
    import numpy as np

    if array.size == 0:
        return b""
    if array.flags.c_contiguous:
        return bytes(array.tobytes())
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    count = reach // array.itemsize + 1
    flat = np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))
    return bytes(flat.tobytes())
