"""Generated inputs for profiling and checking: seeded, of TileLang's kinds."""

from __future__ import annotations

from typing import Any

from tile_api.tensors import packed_type, torch_if_installed, torch_storage
from tile_core.dtypes import DType


def make_tensor(shape: tuple[int, ...], dtype: DType, kind: str, *, seed: int) -> Any:
    """Return a tensor of `shape`: torch's if torch is installed, else NumPy's.

    Parameters
    ----------
    shape
        In elements; four-bit types are packed, so that the last extent is halved.
    kind
        A name of `TensorSupplyType`. ``Auto``: unsigned 0..2, other integers -2..2, bool
        0/1, floats uniform in -1..1, narrow floats small integers, four-bit types any bits.
        ``Normal`` has mean -1 and ``Randn`` mean 0, both deviation 1; ``Uniform`` is in -1..1.
    """
    return _to_torch_if_there(make_array(shape, dtype, kind, seed=seed), dtype)


def make_array(shape: tuple[int, ...], dtype: DType, kind: str, *, seed: int) -> Any:
    """Return a NumPy array of `shape` with the elements of `make_tensor`; torch is not loaded."""
    import numpy as np

    rng = np.random.default_rng(seed + 1)
    if dtype.packing > 1 and shape:
        packed = (*shape[:-1], -(-shape[-1] // dtype.packing))
        return _packed_values(packed, dtype, kind, rng).view(packed_type(dtype).numpy())
    return _values(shape, dtype, kind, rng).astype(dtype.numpy())


def _packed_values(shape: tuple[int, ...], dtype: DType, kind: str, rng: Any) -> Any:
    import numpy as np

    if kind in ("Zero", "One"):
        one = int(np.ones(1, dtype.numpy()).view(np.uint8)[0]) & 15
        return np.full(shape, 0x11 * one if kind == "One" else 0, np.uint8)
    return rng.integers(0, 256, shape, dtype=np.uint8)


def _values(shape: tuple[int, ...], dtype: DType, kind: str, rng: Any) -> Any:
    import numpy as np

    if kind == "Zero":
        return np.zeros(shape)
    if kind == "One":
        return np.ones(shape)
    if dtype.is_bool:
        return rng.integers(0, 2, shape)
    if dtype.is_int or kind == "Integer" or (kind == "Auto" and dtype.is_narrow_float):
        low, high = (0, 3) if dtype.kind.value == "uint" else (-2, 3)
        return rng.integers(low, high, shape)
    if kind in ("Normal", "Randn"):
        return rng.standard_normal(shape) - (kind == "Normal")
    return rng.uniform(-1, 1, shape)


def _to_torch_if_there(values: Any, dtype: DType) -> Any:
    torch = torch_if_installed()
    if torch is None:
        return values
    import numpy as np

    storage = torch_storage(dtype)
    bits = values.view({1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[values.itemsize])
    return torch.from_numpy(bits).view(storage)
