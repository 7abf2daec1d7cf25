"""Compare outputs of two programs, tolerating a stated share of mismatches."""

from __future__ import annotations

from typing import Any


def assert_outputs_close(
    got: Any, expected: Any, atol: float, rtol: float, max_mismatched_ratio: float
) -> None:
    """Raise `AssertionError` unless outputs agree pairwise; pairs with a None are skipped.

    What returns None has no outputs: their number must agree.
    """
    ours, theirs = listed(got), listed(expected)
    if len(ours) != len(theirs):
        raise AssertionError(f"the kernel returns {len(ours)} outputs, the reference {len(theirs)}")
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a is not None and b is not None:
            assert_close(a, b, atol, rtol, max_mismatched_ratio, name=f"output {number}")


def assert_same_bits(got: Any, expected: Any) -> None:
    """Raise `AssertionError` unless outputs are the same, bit for bit."""
    import numpy as np

    for number, (a, b) in enumerate(zip(listed(got), listed(expected), strict=True)):
        ours, theirs = _bytes(a), _bytes(b)
        if not np.array_equal(ours, theirs):
            wrong = np.count_nonzero(ours != theirs)
            raise AssertionError(f"output {number}: {wrong} of {ours.size} bytes differ")


def _bytes(tensor: Any) -> Any:
    """Return the elements of a tensor as bytes, on the host."""
    import numpy as np

    if hasattr(tensor, "detach"):
        from tile_api.tensors import array_of

        tensor = array_of(tensor)
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def listed(outputs: Any) -> list[Any]:
    """Return what a function returned as a list: None is nothing."""
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def assert_close(
    got: Any,
    expected: Any,
    atol: float,
    rtol: float,
    max_mismatched_ratio: float = 0.0,
    *,
    name: str = "tensor",
) -> None:
    """Raise `AssertionError` if too many elements differ by over ``atol + rtol * |expected|``.

    NaN equals NaN, infinities equal themselves; element types of 16 bits and fewer are
    compared as float32.
    """
    import numpy as np

    a, b = to_float64(got), to_float64(expected)
    if a.shape != b.shape:
        raise AssertionError(f"{name}: shape {a.shape} against {b.shape}")
    with np.errstate(invalid="ignore"):
        near = np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b))
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    wrong = int(a.size - np.count_nonzero(close))
    if wrong > max_mismatched_ratio * a.size:
        where = tuple(int(i) for i in np.argwhere(~close)[0])
        raise AssertionError(
            f"{name}: {wrong} of {a.size} elements differ; first at {list(where)}: "
            f"{a[where]} against {b[where]}"
        )


def to_float64(tensor: Any) -> Any:
    """Return a float64 NumPy copy of any tensor."""
    import numpy as np

    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().double().numpy()
    return np.asarray(tensor).astype(np.float64)
