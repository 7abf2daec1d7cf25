"""Cases are packed by the command, and run from the pack alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from hardware.cases import Argument, Case, Pack, parse_case
from hardware.comparing import difference, values_of
from hardware.cubins import complaints
from hardware.executors import torch_dtype
from hardware.features import complexity, features_of
from hardware.memory import Image, StrayWrite
from hardware.pack import RECORDED
from hardware.recorded import Compared, Launched, Tolerance, noted_comparisons, tolerance_of
from hardware.runner import Limits, run_cases
from hardware.strict import header_folders
from support.toolchain import nvrtc_for
from tile_core.dtypes import FORMATS
from tile_core.testing.conformance.catalogue import all_cases
from tile_launch.bundle import Variant, read_bundle
from tile_launch.dtypes import are_bits_of, matches
from tile_launch.manifest import Launch

HERE = Path(__file__).parent
ONLY = "rows_lie_anywhere or test_types and float8_e5m2"
CASES = 5


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Pack a few cases by the command."""
    nvrtc_for("sm_90a")
    folder = tmp_path_factory.mktemp("pack")
    command = [sys.executable, str(HERE / "pack.py"), str(folder), "-n", "0", "--only", ONLY]
    command += ["--arch", "sm_90a", "--tests", str(HERE.parent / "kernels/test_copy_engines.py")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{CASES} cases of {CASES} kernels" in ended.stdout
    return Pack(folder)


def statuses(pack: Pack, executor: str) -> list[Any]:
    records = run_cases(
        pack.cases(), executor, pack.folder, Limits(case=120.0, repeats=2), lambda text: None
    )
    return [(record["status"], record.get("message")) for record in records]


def test_what_is_packed_by_default_exists() -> None:
    for name in RECORDED:
        assert (HERE.parent / name).exists(), name


def test_the_emulator_runs_the_pack(pack: Pack) -> None:
    assert statuses(pack, "emulator") == [("passed", None)] * CASES


def test_a_driver_that_checks_takes_the_pack(pack: Pack) -> None:
    if not header_folders():
        pytest.skip("needs cuda.h")
    assert statuses(pack, "driver") == [("accepted", None)] * CASES


def test_torch_launches_and_reads_back(tmp_path: Path) -> None:
    """What runs on GPUs, on a processor: whole launches, and calls that allocate outputs."""
    pytest.importorskip("torch")

    @T.prim_func
    def twice(A: T.Tensor((3, 5), "bfloat16"), n: T.int32, B: T.Tensor((3, 5), "bfloat16")):
        with T.Kernel(3, threads=32) as row:
            for j in T.Parallel(5):
                B[row, j] = A[row, j] * n

    for name in ("kernels", "data"):
        (tmp_path / name).mkdir()
    tile.compile(twice, target="cpu", out_idx=[2]).save(tmp_path / "kernels" / "twice.tile")
    before = (np.arange(15, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    after = ((np.arange(15, dtype=np.float32) * 2).view(np.uint32) >> 16).astype(np.uint16)
    arguments = (
        Argument("A", "bfloat16", shape=(3, 5), data="a"),
        Argument("n", "int32", value=2),
        Argument("B", "bfloat16", shape=(3, 5), data="b", after="c"),
    )
    arrays = {"a": before, "b": np.full(15, 0xFFFF, np.uint16), "c": after}
    for data, spoil in (("right", 0), ("wrong", 1)):
        changed = {**arrays, "c": after + np.uint16(spoil)}
        stored = {name: array.view(np.uint8) for name, array in changed.items()}
        np.savez(tmp_path / "data" / f"{data}.npz", **stored)
    cases = [Case(name, "twice", name, "", arguments, ("plain",)) for name in ("right", "wrong")]
    on = "hardware.executors:Processor"
    right, wrong = run_cases(cases, on, tmp_path, Limits(case=120.0, repeats=4), str)
    assert (right["status"], right.get("message")) == ("passed", None)
    assert (wrong["status"], wrong["wrong_launches"]) == ("wrong", 4)


def test_torch_holds_every_type() -> None:
    torch = pytest.importorskip("torch")
    for name in FORMATS:
        got = str(torch_dtype(torch, name)).removeprefix("torch.")
        assert matches(name, got) or are_bits_of(name, got), name


def test_an_expectation_that_is_wrong_is_noticed(pack: Pack, tmp_path: Path) -> None:
    """Proof that results are compared: another expectation is not met."""
    (case,) = (c for c in pack.cases() if "padded" in c.name)
    arrays = pack.arrays(case)
    (output,) = (a for a in case.arguments if a.after)
    arrays[output.after].view(np.float32)[9] += 1
    for name in ("kernels", "programs"):
        (tmp_path / name).symlink_to(pack.folder / name)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / f"{case.data}.npz", **arrays)
    (record,) = run_cases([case], "emulator", tmp_path, Limits(case=120.0, repeats=1), str)
    assert record["status"] == "wrong"
    assert record["first"]["index"] == (0, 0, 9)


def test_cases_are_lines(pack: Pack) -> None:
    for case in pack.cases():
        assert parse_case(case.line()) == case


def test_outputs_are_poisoned(pack: Pack) -> None:
    (case,) = (c for c in pack.cases() if "padded" in c.name)
    (output,) = (a for a in case.arguments if a.after)
    assert np.isnan(values_of(pack.arrays(case)[output.data], "float32")).all()


def first_variant(pack: Pack) -> Variant:
    (case,) = (c for c in pack.cases() if "test_types" in c.name)
    (variant,) = read_bundle(pack.bundle(case)).variants
    return variant


def test_machine_code_is_what_its_manifest_says(pack: Pack) -> None:
    for case in pack.cases():
        (variant,) = read_bundle(pack.bundle(case)).variants
        assert complaints(variant.manifest, variant.code) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"symbol": "other"}, "no kernel other, there is turn"),
        ({"arguments": ()}, "turn: 2 parameters, 0 are passed"),
        ({"shared_bytes": 227 * 1024 + 1}, "turn: 0 + 232449 bytes of shared memory"),
        ({"block": (1024, 1, 1)}, "threads, compiled for"),
    ],
)
def test_machine_code_that_is_not_is_noticed(pack: Pack, change: dict[str, Any], told: str) -> None:
    variant = first_variant(pack)
    steps = tuple(
        replace(step, **change) if isinstance(step, Launch) else step
        for step in variant.manifest.steps
    )
    (complaint, *_) = complaints(replace(variant.manifest, steps=steps), variant.code)
    assert told in complaint


def test_features_are_read_from_the_text() -> None:
    text = """
    tile::sptr<half_t> A = tile::smem<half_t>(0, 64);
    tile::mbarrier_init(full, 1);
    tile::tma_load<2>(A, A_map, full, 0, 0);
    tile::wgmma_ss<128, 0, 1, 4>(C, a, b);
    """
    found = features_of(text, (0, 128), "")
    assert found == (
        "mbarrier", "tma load 2D", "tma swizzle 128", "wgmma, factors shared, half",
    )  # fmt: skip
    assert features_of("", (), "sm_80") == ("written for sm_80",)
    assert complexity(found, 9) > complexity(found[:-1], 99)


@pytest.mark.parametrize(
    ("dtype", "expected", "got", "relative", "is_near"),
    [
        ("float32", 1.0, 1.0 + 1e-3, 2e-3, True),
        ("float32", 1.0, 1.0 + 3e-3, 2e-3, False),
        ("float32", np.nan, np.nan, 0.0, True),
        ("float32", 1.0, np.nan, 1.0, False),
        ("float32", np.inf, np.inf, 0.0, True),
        ("float32", np.inf, 1.0, 1.0, False),
        ("float32", 0.0, -0.0, 0.0, True),
        ("int32", 7, 7, 0.0, True),
        ("int32", 7, 8, 1.0, False),
        ("float16", 1.0, 1.001, 2e-3, True),
    ],
)
def test_results_are_compared(
    dtype: str, expected: float, got: float, relative: float, is_near: bool
) -> None:
    argument = Argument("C", dtype, shape=(1,), relative=relative)
    bytes_of = [np.array([value], dtype).view(np.uint8) for value in (expected, got)]
    assert (difference(argument, *bytes_of) is None) == is_near


def test_short_floats_are_what_ml_dtypes_says() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        theirs = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
        np.testing.assert_array_equal(values_of(codes, name).astype(np.float32), theirs)


def test_writes_between_rows_are_noticed() -> None:
    argument = Argument("C", "float32", shape=(2, 2), strides=(4, 1))
    image = Image(argument, np.zeros(16, np.uint8))
    inside = image.array(np.dtype("float32"))
    inside[...] = [[1, 2], [3, 4]]
    result = image.result(image.bytes).view(np.float32)
    assert result.tolist() == [1, 2, 3, 4]
    image.bytes[image.start + 9] ^= 1
    with pytest.raises(StrayWrite, match=r"C: 1 bytes outside of it .* 9 bytes from where it"):
        image.result(image.bytes)


def test_tolerances_are_those_of_the_test() -> None:
    """Twice the loosest one; nothing is loosened where all is exact."""
    (case,) = (c for c in all_cases() if c.name == "gemm/clear-always/float32/8x8x8")

    class Lowered:
        kernel = case.build()

    arrays = (np.ones(1, np.float32),) * 2 + (np.array([3.0], np.float32),)
    launched = Launched(Lowered(), arrays, arrays)  # type: ignore[arg-type]
    exact, loose = Tolerance(0.0, 0.0), Tolerance(1e-3, 0.0)
    assert tolerance_of([exact], launched, 2) == exact
    assert tolerance_of([exact, loose], launched, 2) == Tolerance(2e-3, 2.0**-22)
    assert tolerance_of([], launched, 2).relative == 1e-5


def test_quotients_may_be_rounded_otherwise() -> None:
    argument = Argument("Q", "int8", shape=(2,), absolute=1.0)
    expected = np.array([-128, 127], np.int8).view(np.uint8)
    assert difference(argument, expected, np.array([-127, 126], np.int8).view(np.uint8)) is None
    found = difference(argument, expected, np.array([127, 127], np.int8).view(np.uint8))
    assert found is not None
    assert found.index == (0,)


def test_a_case_says_all_there_is() -> None:
    case = Case("n", "k", "d", "sm_90a", (Argument("x", "int32", value=3),), ("plain",))
    assert parse_case(case.line()) == case


def test_comparisons_are_noted() -> None:
    with pytest.MonkeyPatch.context() as patches, noted_comparisons(patches) as noted:
        np.testing.assert_allclose(1.0, 1.1, rtol=0.5)
        np.testing.assert_array_equal([1], [1])
        assert not noted.has_failed
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(1.0, 2.0, 1e-3)
    assert noted == Compared([Tolerance(0.5, 0.0), Tolerance(0.0, 0.0)], has_failed=True)
    before = len(noted.tolerances)
    np.testing.assert_array_equal([1], [1])
    assert len(noted.tolerances) == before
