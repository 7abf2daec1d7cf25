"""Whether a candidate's results are those of the reference."""

from __future__ import annotations

from typing import Any

from tile_api.timing.compare import assert_close, assert_outputs_close


def compare_results(
    before: list[Any],
    args: list[Any],
    got: list[Any],
    expected: list[Any],
    tolerances: tuple[float, float, float],
) -> None:
    """Raise `AssertionError` if results differ.

    A kernel may return its results or write them into its arguments, and so may a reference. What
    both return is compared; arguments that the reference changed have to be changed alike; what
    only the reference returns stands for the arguments that the kernel changed, in their order.
    `expected` holds the arguments after the reference ran, and then what it returned; `tolerances`
    are absolute, relative, and the share of elements that may differ.
    """
    atol, rtol, share = tolerances
    changed_there, returned = expected[: len(args)], expected[len(args) :]
    if not got and returned:
        got = [after for was, after in zip(before, args, strict=True) if _differ(was, after)]
    assert_outputs_close(got, returned, atol, rtol, share)
    for number, (was, ours, theirs) in enumerate(zip(before, args, changed_there, strict=True)):
        if _differ(was, theirs):
            assert_close(ours, theirs, atol, rtol, share, name=f"argument {number}")


def _differ(before: Any, after: Any) -> bool:
    import numpy as np

    if not isinstance(before, np.ndarray):
        return False
    array = after if isinstance(after, np.ndarray) else np.asarray(after.cpu())
    return before.tobytes() != array.tobytes()
