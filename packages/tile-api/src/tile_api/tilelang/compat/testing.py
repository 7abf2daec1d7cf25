"""`tilelang.testing`: tests run where their kernels can, and are skipped elsewhere."""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import Never

from tile_api.tensors import torch_if_installed
from tile_api.tilelang.machines import VisibleMachine, machine
from tile_api.timing.compare import assert_close
from tile_core.errors import FrontendValueError


def main() -> Never:
    """Run the tests of the calling file and end the process; arguments are pytest's."""
    import pytest

    file = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's, NumPy's and torch's generators."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch = torch_if_installed()
    if torch is not None:
        torch.manual_seed(seed)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A decorator for tests, functions or classes, that skips them on other machines."""

    what: str  # the machine that is needed, for the reason of the skip
    holds: Callable[[VisibleMachine], bool]  # whether the machine at hand will do

    def __call__(self, func: Any = None) -> Any:
        """Mark a test; without one, return the decorator itself."""
        if func is None:
            return self
        for mark in self.marks():
            func = mark(func)
        return func

    def marks(self) -> list[Any]:
        """Return the marks of pytest, for ``pytest.param(..., marks=...)``."""
        import pytest

        here = machine()
        reason = f"needs {self.what}; kernels run on {here.target}"
        return [pytest.mark.skipif(not self.holds(here), reason=reason)]


requires_gpu = Requirement("a GPU", lambda m: m.is_cuda or m.is_hip)
requires_cuda = Requirement("an NVIDIA GPU", lambda m: m.is_cuda)
requires_rocm = Requirement("an AMD GPU", lambda m: m.is_hip)
requires_cdna = Requirement("an AMD GPU with matrix cores", lambda m: m.is_hip)
requires_cuda_or_cdna = Requirement("a GPU", lambda m: m.is_cuda or m.is_hip)
requires_gfx950 = Requirement("a gfx950", lambda m: m.target.arch == "gfx950")
requires_metal = Requirement("an Apple GPU", lambda m: False)
requires_llvm = Requirement("LLVM", lambda m: True)

_MODES: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("ge", "gt", "le", "lt", "eq")
}


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Requirement:
    """Return a decorator for tests that need certain NVIDIA GPUs.

    The machine's version compares with the given one as `mode` says: ge, gt, le, lt or eq.
    """
    if mode not in _MODES:
        raise FrontendValueError(
            f"versions are not compared by {mode!r}", hint=f"use one of {', '.join(_MODES)}"
        )
    wanted = (major_version, minor_version)
    return Requirement(
        f"an NVIDIA GPU of compute capability {mode} {major_version}.{minor_version}",
        lambda m: m.is_cuda and _MODES[mode](m.capability, wanted),
    )


def _comparing(mode: str, told: str) -> Callable[..., Requirement]:
    def requires(major_version: int, minor_version: int = 0) -> Requirement:
        return requires_cuda_compute_version(major_version, minor_version, mode)

    requires.__doc__ = f"Return a decorator for tests that need {told}."
    return requires


requires_cuda_compute_version_ge = _comparing("ge", "this NVIDIA GPU or a newer one")
requires_cuda_compute_version_gt = _comparing("gt", "a newer NVIDIA GPU than this")
requires_cuda_compute_version_le = _comparing("le", "this NVIDIA GPU or an older one")
requires_cuda_compute_version_lt = _comparing("lt", "an older NVIDIA GPU than this")
requires_cuda_compute_version_eq = _comparing("eq", "just this NVIDIA GPU")


def requires_package(*packages: str) -> Requirement:
    """Return a decorator for tests that import other packages."""
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    return Requirement(f"the packages {', '.join(packages)}", lambda m: not missing)


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """Raise `AssertionError` if too many elements of two tensors differ; else return True.

    Parameters
    ----------
    tensor_a, tensor_b
        What came, and what was expected; two Nones agree.
    rtol, atol
        An element may differ by ``atol + rtol * |expected|``.
    max_mismatched_ratio
        The share of elements that may differ by more.
    verbose
        Print that they agree.
    check_dtype
        Element types must agree, too.
    equal_nan, check_device, check_layout, check_stride, ref_name
        Accepted for compatibility: NaN equals NaN, and tensors are compared where they are.
    base_name
        What messages call the first tensor.
    """
    if tensor_a is None and tensor_b is None:
        return True
    if check_dtype and tensor_a.dtype != tensor_b.dtype:
        raise AssertionError(f"{base_name} is {tensor_a.dtype}, {ref_name} {tensor_b.dtype}")
    assert_close(tensor_a, tensor_b, atol, rtol, max_mismatched_ratio, name=base_name)
    if verbose:
        sys.stdout.write(f"{base_name} agrees with {ref_name}\n")
    return True


def process_func(func: Callable[..., Any], name: str | None = None, **kwargs: Any) -> Any:
    """Run a function that measures a kernel; print its name and the time, and return that."""
    latency = func(**kwargs)
    sys.stdout.write(f"{name or f'{func.__module__}.{func.__name__}'}: {latency} ms\n")
    return latency


def regression(prefixes: Sequence[str] = ("regression_",), verbose: bool = True) -> None:
    """Run all functions of the calling file that are called ``regression_…``."""
    space = sys._getframe(1).f_globals
    for name, value in list(space.items()):
        if name.startswith(tuple(prefixes)) and callable(value):
            value()
