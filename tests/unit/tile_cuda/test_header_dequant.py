"""Four-bit numbers become exactly the floats they stand for: the PTX itself is run, in numpy."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from support.cuda_header import ptx
from tile_core.dtypes import dtype_of
from tile_core.interp.values import decode

WORDS = np.concatenate(
    [
        np.arange(16, dtype=np.uint32) * np.uint32(0x11111111),
        np.random.default_rng(1).integers(0, 2**32, 500, dtype=np.uint32),
    ]
)


def pairs(dtype):
    """Return how two floats of a word are read and how they are packed."""

    def read(x):
        return x.view(dtype).reshape(*x.shape, 2).astype(np.float64)

    def pack(y):
        return np.ascontiguousarray(y.astype(dtype)).view(np.uint32)[..., 0]

    return read, pack


def fma(dtype):
    read, pack = pairs(dtype)
    return lambda a, b, c: pack(read(a) * read(b) + read(c))


def prmt(a, b, selector):
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros_like(a)
    for i in range(4):
        code = selector >> np.uint32(4 * i) & np.uint32(15)
        assert (code < 8).all()  # no replication of signs
        byte = both >> (code.astype(np.uint64) * np.uint64(8)) & np.uint64(255)
        result |= byte.astype(np.uint32) << np.uint32(8 * i)
    return result


def lop3(a, b, c, table):
    result = np.zeros_like(a)
    for bits in range(8):
        if int(table[0]) >> bits & 1:
            x, y, z = (v if bits >> s & 1 else ~v for v, s in ((a, 2), (b, 1), (c, 0)))
            result |= x & y & z
    return result


OPERATIONS = {
    "mov": lambda a: a,
    "prmt": prmt,
    "lop3": lop3,
    "shr": lambda a, n: a >> n,
    "shl": lambda a, n: a << n,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "fma.rn.f16x2": fma(np.float16),
    "fma.rn.bf16x2": fma(ml_dtypes.bfloat16),
}
LINE = re.compile(r"^\s*(?P<name>[a-z0-9.]+)\s+(?P<args>[^;]*);", re.MULTILINE)


def run(text: str) -> np.ndarray:
    """Run straight-line PTX on `WORDS`; return what the one 16-byte store stores."""
    registers: dict[str, np.ndarray] = {}

    def value(arg: str) -> np.ndarray:
        if arg in registers:
            return registers[arg]
        return np.full(WORDS.shape, int(arg, 0) & 0xFFFFFFFF, np.uint32)

    for line in LINE.finditer(text[text.index("ld.global") :]):
        name = line["name"]
        args = [arg.strip(" {}") for arg in line["args"].split(",")]
        if name.startswith("ld.global"):
            registers[args[0]] = WORDS
        elif name.startswith("st.global.v4"):
            return np.stack([value(arg) for arg in args[1:]], axis=-1)
        elif "rd" not in args[0]:  # of addresses nothing is asked
            known = name if name.startswith("fma") else name.split(".")[0]
            registers[args[0]] = OPERATIONS[known](*(value(arg) for arg in args[1:]))
    raise AssertionError("nothing is stored")


@pytest.mark.parametrize(("kind", "pointer"), [("half_t", "H"), ("bfloat16_t", "B")])
@pytest.mark.parametrize(
    ("form", "dtype"), [("i4", "int4"), ("u4", "uint4"), ("e2m1", "float4_e2m1fn")]
)
def test_every_number_in_every_place(form, dtype, kind, pointer):
    text = ptx(
        f"tile::frag<{kind}, 8> r; tile::dequant_{form}(r, U8);tile::store<8>({pointer}, r);",
        "sm_80",
    )
    element = np.float16 if kind == "half_t" else ml_dtypes.bfloat16
    found = np.ascontiguousarray(run(text)).view(element).astype(np.float32)
    nibbles = (WORDS[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)).astype(
        np.uint8
    )
    wanted = decode(nibbles, dtype_of(dtype)).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
