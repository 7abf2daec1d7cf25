"""What the compiler makes of the device header computes what the header says."""

from __future__ import annotations

import numpy as np
import pytest

from support.hip_executed import THREADS, executed
from tile_core.dtypes import dtype_of
from tile_core.interp.values import convert, decode

OLD_AND_NEW = ["gfx90a", "gfx942", "gfx950"]
WAVE = 64

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond a type


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


NARROW = {"N4": "float8_e4m3fnuz", "N5": "float8_e5m2fnuz", "E4": "float8_e4m3fn",
          "E5": "float8_e5m2"}  # fmt: skip
CPP = {"N4": "tile::e4m3_fnuz", "N5": "tile::e5m2_fnuz", "E4": "tile::e4m3", "E5": "tile::e5m2"}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", OLD_AND_NEW)
@pytest.mark.parametrize("name", NARROW)
def test_all_codes_of_narrow_floats_become_their_numbers(arch, name):
    codes = np.arange(256, dtype=np.uint8)
    found = np.full(256, 99.0, np.float32)
    each = " ".join(f"F[tid + {k}] = tile::cast<float>({name}[tid + {k}]);" for k in (0, 128))
    executed(arch, each, F=found, **{name: codes})
    kind = dtype_of(NARROW[name])
    expected = decode(codes.view(kind.numpy()), kind).astype(np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", OLD_AND_NEW)
@pytest.mark.parametrize("name", NARROW)
def test_numbers_become_codes_of_narrow_floats(arch, name):
    kind = dtype_of(NARROW[name])
    numbers = decode(np.arange(256, dtype=np.uint8).view(kind.numpy()), kind).astype(np.float32)
    finite = np.sort(numbers[np.isfinite(numbers)])
    middle = finite[:-1] + np.diff(finite) / 2
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e9, -1e9, 1e-9, -1e-9, 240.0, 248.0, 448.0, 464]
    x = np.concatenate([middle, np.nextafter(middle, np.float32(9)), special]).astype(np.float32)
    x = np.resize(x, 640)
    found = np.full(640, 0x55, np.uint8)
    lines = [
        f"{name}[tid + {k}] = tile::cast<{CPP[name]}>(F[tid + {k}]);" for k in range(0, 640, 128)
    ]
    executed(arch, "\n".join(lines), F=x, **{name: found})
    expected = convert(x, dtype_of("float32"), kind, saturate=True)
    got = decode(found.view(kind.numpy()), kind)
    np.testing.assert_array_equal(got, np.asarray(expected).astype(got.dtype))
    is_zero = got == 0
    assert (np.signbit(got[is_zero]) == np.signbit(expected[is_zero])).all()


@pytest.mark.parametrize("arch", OLD_AND_NEW)
def test_floats_become_integers_and_halves(arch):
    x = np.concatenate([
        [0.0, -0.5, 0.9, -1.9, 2.0**31, -(2.0**31), 2.0**32, 1e20, -1e20, np.inf, -np.inf, np.nan],
        rng().standard_normal(116) * 2.0 ** rng(1).integers(-20, 60, 116),
    ]).astype(np.float32)  # fmt: skip
    d = x.astype(np.float64) * 1.000000001
    i, u = np.zeros(256, np.int32), np.zeros(256, np.uint32)
    l, s = np.zeros(256, np.int64), np.zeros(256, np.int8)
    h, b = np.zeros(256, np.float16), np.zeros(256, np.uint16)
    body = "\n".join(
        f"{p}[tid + {k}] = tile::cast<{t}>({source}[tid]);"
        for p, t in (("I", "int"), ("U", "tile::u32"), ("L", "tile::i64"), ("S8", "tile::i8"),
                     ("H", "half_t"), ("B", "bfloat16_t"))
        for k, source in ((0, "F"), (128, "D"))
    )  # fmt: skip
    executed(arch, body, F=x, D=d, I=i, U=u, L=l, S8=s, H=h, B=b)
    for name, found in (("int32", i), ("uint32", u), ("int64", l), ("int8", s), ("float16", h),
                        ("bfloat16", b)):  # fmt: skip
        kind = dtype_of(name)
        values = (convert(x, dtype_of("float32"), kind), convert(d, dtype_of("float64"), kind))
        expected = np.concatenate([np.asarray(v) for v in values])
        got = decode(found.view(kind.numpy()), kind)
        np.testing.assert_array_equal(got, expected.astype(got.dtype), err_msg=name)


@pytest.mark.parametrize("arch", OLD_AND_NEW)
def test_what_lies_next_to_the_middle_of_two_halves_is_rounded_once(arch):
    steps = [1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 3 * 2**-11 + 2**-45, 65519.9999999,
             65520.0, 2**-25 + 2**-60, 2**-25 - 2**-60, -(2**-24) * 1.5 - 2**-70]  # fmt: skip
    d = np.resize(steps, THREADS)
    u = np.resize([65535, 65519, 65520, 2049, 2051, 4098, 4102], THREADS).astype(np.uint16)
    h = np.zeros(2 * THREADS, np.float16)
    body = "H[tid] = tile::cast<half_t>(D[tid]); H[tid + 128] = tile::cast<half_t>(U16[tid]);"
    executed(arch, body, D=d, U16=u, H=h)
    expected = np.concatenate([d.astype(np.float16), u.astype(np.float32).astype(np.float16)])
    np.testing.assert_array_equal(h, expected)


SHUFFLES = {
    "xor": lambda lane, by, width: np.where(
        (lane ^ by) < (lane | (width - 1)) + 1, lane ^ by, lane),
    "down": lambda lane, by, width: np.where(lane % width + by < width, lane + by, lane),
    "up": lambda lane, by, width: np.where(lane % width - by >= 0, lane - by, lane),
    "idx": lambda lane, by, width: lane // width * width + by % width,
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", OLD_AND_NEW)
@pytest.mark.parametrize("kind", SHUFFLES)
def test_shuffles(arch, kind):
    distances = [1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63]
    cases = [
        (by, width) for by in distances for width in (64, 32, 16) if by < width or kind != "xor"
    ]
    f = rng().standard_normal(THREADS).astype(np.float32)
    found = np.zeros((2 * len(cases), THREADS), np.float32)
    body = "\n".join(
        f"F[{THREADS * (1 + 2 * row + from_memory)} + tid] ="
        f" tile::shfl_{kind}(float(F[tid]), {by} {'+ n' if from_memory else ''}, {width});"
        for row, (by, width) in enumerate(cases)
        for from_memory in (0, 1)
    )
    whole = np.concatenate([f, found.ravel()])
    executed(arch, body, F=whole)
    lane = np.arange(THREADS) % WAVE
    first = np.arange(THREADS) // WAVE * WAVE
    for row, (by, width) in enumerate(cases):
        expected = f[first + SHUFFLES[kind](lane, by, width)]
        for from_memory in (0, 1):
            got = whole[THREADS * (1 + 2 * row + from_memory) :][:THREADS]
            np.testing.assert_array_equal(got, expected, err_msg=f"{by} of {width}")


@pytest.mark.parametrize("arch", OLD_AND_NEW)
def test_wide_and_narrow_values_are_exchanged_whole(arch):
    d = rng().standard_normal(THREADS)
    s = rng().integers(-128, 128, THREADS).astype(np.int8)
    lane = np.arange(THREADS)
    expected = d[lane ^ 5], s[lane ^ 16]
    executed(arch, "D[tid] = tile::shfl_xor(double(D[tid]), 5);"
             "S8[tid] = tile::shfl_xor(tile::i8(S8[tid]), 16);", D=d, S8=s)  # fmt: skip
    np.testing.assert_array_equal(d, expected[0])
    np.testing.assert_array_equal(s, expected[1])


@pytest.mark.parametrize("arch", OLD_AND_NEW)
def test_votes_matches_and_reductions(arch):
    i = rng(2).integers(-4, 4, THREADS).astype(np.int32)
    i[:WAVE] = np.where(i[:WAVE] == 3, 0, i[:WAVE])
    f = rng(3).integers(-99, 99, THREADS).astype(np.float32)
    h = f.astype(np.float16)
    answers = np.zeros(6 * THREADS, np.uint64)
    sums = np.zeros(6 * THREADS, np.float32)
    questions = (
        "tile::ballot(x > 0)",
        "tile::any(x == 3)",
        "tile::all(x < 3)",
        "tile::match_any(x)",
        "tile::match_all(x)",
        "tile::match_all(x * 0 + 7)",
    )
    totals = ("tile::warp_reduce_sum(y)", "tile::warp_reduce_max(y)", "tile::warp_reduce_min(y)",
              "tile::warp_reduce_sum(y, 32)", "tile::cast<float>(tile::warp_reduce_max(z))",
              "tile::cast<float>(tile::warp_reduce_bitor(x))")  # fmt: skip
    body = "const int x = I[tid]; const float y = F[tid]; const half_t z = H[tid];\n"
    body += "\n".join(f"UL[tid + {THREADS * k}] = {q};" for k, q in enumerate(questions))
    body += "\n".join(f"F[tid + {THREADS * (k + 1)}] = {t};" for k, t in enumerate(totals))
    whole = np.concatenate([f, sums])
    executed(arch, body, I=i, F=whole, H=h, UL=answers)

    def of_waves(values, function, width=WAVE):
        return np.repeat([function(w) for w in values.reshape(-1, width)], width)

    def lanes(mask):
        return np.uint64(sum(1 << int(k) for k in np.flatnonzero(mask)))

    everywhere = lanes(np.ones(WAVE))
    expected = [
        of_waves(i, lambda w: lanes(w > 0)), of_waves(i, lambda w: np.uint64((w == 3).any())),
        of_waves(i, lambda w: np.uint64((w < 3).all())),
        np.concatenate([[lanes(w == x) for x in w] for w in i.reshape(-1, WAVE)]),
        np.zeros(THREADS, np.uint64), np.full(THREADS, everywhere),
    ]  # fmt: skip
    np.testing.assert_array_equal(answers.reshape(6, -1), expected)
    wanted = [
        of_waves(f, np.sum), of_waves(f, np.max), of_waves(f, np.min), of_waves(f, np.sum, 32),
        of_waves(f, np.max), of_waves(i, np.bitwise_or.reduce),
    ]  # fmt: skip
    np.testing.assert_array_equal(whole[THREADS:].reshape(6, -1), wanted)


@pytest.mark.parametrize("arch", OLD_AND_NEW)
@pytest.mark.parametrize("seed", [None, 5])
def test_barriers_that_count(arch, seed):
    i = np.zeros(3 * THREADS, np.int32)
    body = """
        I[tid] = tile::syncthreads_count(tid % 5 < n);
        I[tid + 128] = tile::syncthreads_or(tid == 100);
        I[tid + 256] = tile::syncthreads_and(tid != 100);
    """
    executed(arch, body, 2, shared_bytes=16, seed=seed, I=i)
    assert (i[:THREADS] == sum(t % 5 < 2 for t in range(THREADS))).all()
    assert (i[THREADS : 2 * THREADS] == 1).all()
    assert (i[2 * THREADS :] == 0).all()


@pytest.mark.parametrize("arch", OLD_AND_NEW)
def test_numbers_of_four_bits(arch):
    words = rng(4).integers(0, 2**32, THREADS, dtype=np.uint32)
    h, b = np.zeros((3, THREADS, 8), np.float16), np.zeros((3, THREADS, 8), np.uint16)
    body = "\n".join(
        f"{{ tile::frag<{kind}, 8> r; tile::dequant_{form}(r, U8 + (tid * 4));"
        f" tile::store<8>({p} + ({k * THREADS * 8} + tid * 8), r); }}"
        for k, form in enumerate(("i4", "u4", "e2m1"))
        for kind, p in (("half_t", "H"), ("bfloat16_t", "B"))
    )
    executed(arch, body, U8=words.view(np.uint8), H=h, B=b)
    codes = words[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    small = magnitudes[codes & 7] * np.where(codes & 8, -1, 1)
    expected = np.stack([(codes.astype(np.int64) ^ 8) - 8, codes, small])
    np.testing.assert_array_equal(h, expected)
    np.testing.assert_array_equal((b.astype(np.uint32) << 16).view(np.float32), expected)
