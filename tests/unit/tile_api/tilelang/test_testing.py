"""`tilelang.testing`: which tests run on which machine, and how tensors are compared."""

from __future__ import annotations

import numpy as np
import pytest

from tile_api.tilelang import install, testing
from tile_core.errors import FrontendValueError

MACHINES = {
    "cpu": {"cuda", "llvm", "gpu", "cuda_or_cdna", "ge 8.9", "gt 8.9", "ge 9.0"},
    "interpret": {"cuda", "llvm", "gpu", "cuda_or_cdna", "ge 8.9", "gt 8.9", "ge 9.0"},
    "cuda:sm_80@sim": {"cuda", "llvm", "gpu", "cuda_or_cdna", "lt 9.0", "le 8.9"},
    "cuda:sm_90a@sim": {"cuda", "llvm", "gpu", "cuda_or_cdna", "ge 8.9", "gt 8.9", "ge 9.0"},
    "hip:gfx942@sim": {"rocm", "cdna", "llvm", "gpu", "cuda_or_cdna"},
}
REQUIREMENTS = {
    **{
        name: getattr(testing, f"requires_{name}")
        for name in ("cuda", "rocm", "llvm", "gpu", "cdna", "cuda_or_cdna", "metal", "gfx950")
    },
    "ge 8.9": testing.requires_cuda_compute_version(8, 9),
    "gt 8.9": testing.requires_cuda_compute_version_gt(8, 9),
    "le 8.9": testing.requires_cuda_compute_version_le(8, 9),
    "lt 9.0": testing.requires_cuda_compute_version_lt(9),
    "eq 8.9": testing.requires_cuda_compute_version_eq(8, 9),
    "ge 9.0": testing.requires_cuda_compute_version_ge(9, 0),
}


def runs(requirement) -> bool:
    (mark,) = requirement.marks()
    return not mark.args[0]


@pytest.mark.parametrize("target", MACHINES)
def test_where_tests_run(target: str) -> None:
    with install(target):
        found = {name for name, requirement in REQUIREMENTS.items() if runs(requirement)}
    expected = MACHINES[target]
    assert found == expected


def test_without_an_installation_only_a_gpu_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILE_FORCE_TARGET", raising=False)
    from tile_core.plugins.host import default_host

    kind = default_host().resolve("auto")[1].kind
    assert runs(testing.requires_cuda) == (kind == "cuda")


def test_marks_functions_and_classes() -> None:
    def function() -> None: ...

    class Tests: ...

    with install("cpu"):
        for what in (function, Tests):
            assert testing.requires_rocm(what) is what
            (mark,) = what.pytestmark
            assert mark.kwargs["reason"].startswith("needs an AMD GPU; kernels run on cpu")
        assert testing.requires_cuda() is testing.requires_cuda


def test_packages() -> None:
    assert runs(testing.requires_package("numpy"))
    assert not runs(testing.requires_package("numpy", "no_such_package"))


def test_an_unknown_comparison() -> None:
    with pytest.raises(FrontendValueError, match="versions are not compared by 'near'"):
        testing.requires_cuda_compute_version(8, 0, mode="near")


def test_comparing() -> None:
    a = np.zeros(1000, "float32")
    b = a.copy()
    b[0] = 1
    assert testing.torch_assert_close(a, b)
    assert testing.torch_assert_close(None, None)
    with pytest.raises(AssertionError, match="out: 1 of 1000 elements differ"):
        testing.torch_assert_close(a, b, max_mismatched_ratio=0, base_name="out")
    with pytest.raises(AssertionError, match="float32, RHS float64"):
        testing.torch_assert_close(a, a.astype("float64"))
    assert testing.torch_assert_close(a, a.astype("float64"), check_dtype=False)


def test_seeds() -> None:
    torch = pytest.importorskip("torch")
    drawn = []
    for _ in range(2):
        testing.set_random_seed(7)
        drawn.append((np.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


def regression_of_this_file() -> None:
    testing.process_func(lambda n: n / 2, name="halves", n=3)


def test_regressions_run_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    testing.regression()
    assert capsys.readouterr().out == "halves: 1.5 ms\n"
    testing.regression(["other"])
    assert capsys.readouterr().out == ""
