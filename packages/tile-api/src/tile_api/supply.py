"""Generated inputs for profiling and checking: seeded, of TileLang's kinds."""

from __future__ import annotations

import importlib.util
from typing import Any

from tile_api.tensors import torch_dtype
from tile_core.dtypes import DType, dtype_of


def make_tensor(shape: tuple[int, ...], dtype: DType, kind: str, *, seed: int) -> Any:
    """Return a tensor of `shape`: torch's if torch is installed, else NumPy's.

    Parameters
    ----------
    kind
        A name of `TensorSupplyType`. ``Auto``: unsigned 0..2, other integers -2..2, bool
        0/1, floats uniform in -1..1, narrow floats small integers, packed types any bits.
    """
    import numpy as np

    rng = np.random.default_rng(seed + 1)
    if dtype.packing > 1 and shape:
        packed = (*shape[:-1], -(-shape[-1] // dtype.packing))
        values = rng.integers(0, 256, packed, dtype=np.uint8)
        return _to_torch_if_there(values, dtype, raw=True)
    values = _values(shape, dtype, kind, rng)
    return _to_torch_if_there(values.astype(dtype.numpy()), dtype, raw=False)


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
        return rng.standard_normal(shape)
    return rng.uniform(-1, 1, shape)


def _to_torch_if_there(values: Any, dtype: DType, *, raw: bool) -> Any:
    if importlib.util.find_spec("torch") is None:
        return values
    import numpy as np
    import torch

    storage = dtype_of("uint8") if raw else dtype
    wanted = torch_dtype(storage, torch)
    native = storage.format.storage in np.sctypeDict
    if native:
        return torch.from_numpy(values)
    bits = values.view({1: np.uint8, 2: np.int16}[values.itemsize])
    return torch.from_numpy(bits).view(wanted)
