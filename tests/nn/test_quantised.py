"""Quantisers and products of quantised operands, against plain torch."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients
from tile_nn.kernels.linear_nf4 import NF4

TYPES = ("float32", "bfloat16", "float16")
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0}


def scaled(x, group_size, most, eps):
    groups = x.float().unflatten(-1, (-1, group_size or x.shape[-1]))
    amax = groups.abs().amax(-1)
    return groups, amax.clamp(min=eps) / most


def int8(x, *, group_size=0, eps=1e-10):
    groups, scale = scaled(x, group_size, 127.0, eps)
    q = (groups / scale[..., None]).clamp(-127, 127).round()
    return q.flatten(-2).to(torch.int8), scale


def fp8(x, *, group_size=0, dtype="float8_e4m3fn", eps=1e-10, scale_ue8m0=False):
    groups, scale = scaled(x, group_size, LARGEST[dtype], eps)
    if scale_ue8m0:
        scale = torch.exp2(scale.log2().ceil())
    q = (groups / scale[..., None]).clamp(-LARGEST[dtype], LARGEST[dtype])
    return q.flatten(-2).to(getattr(torch, dtype)), scale


QUANTISERS = {
    "rows": (tile_nn.quantize_int8, int8, {}),
    "groups": (tile_nn.quantize_int8, int8, {"group_size": 16}),
    "e4m3": (tile_nn.quantize_fp8, fp8, {}),
    "DeepSeek": (tile_nn.quantize_fp8, fp8, {"group_size": 32, "eps": 1e-4}),
    "e5m2": (tile_nn.quantize_fp8, fp8, {"dtype": "float8_e5m2", "group_size": 16}),
    "powers of two": (tile_nn.quantize_fp8, fp8, {"scale_ue8m0": True}),
}


def rows(dtype):
    """Return rows with zeros, tiny and large numbers, and ties."""
    x = torch.randn((7, 64), generator=torch.Generator().manual_seed(1))
    x[1] = 0
    x[2] *= 1e-3
    x[3] *= 1e3
    x[4] = torch.arange(64) - 31.5
    x[4, 0] = 127
    return x.to(getattr(torch, dtype))


@pytest.mark.parametrize("name", QUANTISERS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_quantisers_bit_by_bit(target, dtype, name):
    kernel, meant, settings = QUANTISERS[name]
    q, scale = kernel.on(target)(rows(dtype), **settings)
    wanted, its = meant(rows(dtype), **settings)
    assert q.dtype == wanted.dtype
    assert torch.equal(scale, its)
    assert torch.equal(q.view(torch.int8), wanted.view(torch.int8))


@pytest.mark.parametrize("target", EMULATED)
def test_quantisers_emulated(target):
    q, scale = tile_nn.quantize_int8.on(target)(rows("float16"))
    wanted, its = int8(rows("float16"))
    assert torch.equal(q, wanted)
    assert torch.equal(scale, its)


def w8a8(x, weight, x_scale, weight_scale, bias=None, *, out_dtype="float32"):
    total = x.double() @ weight.double().T
    y = total * x_scale.double() * weight_scale.double().flatten()
    return (y if bias is None else y + bias.double()).to(getattr(torch, out_dtype))


@pytest.mark.parametrize("out_dtype", TYPES)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_products_of_bytes(target, out_dtype):
    x, weight = torch.randint(-127, 128, (2, 7, 100)), torch.randint(-127, 128, (13, 100))
    given = x.to(torch.int8), weight.to(torch.int8), torch.rand(2, 7, 1), torch.rand(13)
    bias = torch.randn(13)
    y = tile_nn.linear_w8a8.on(target)(*given, bias, out_dtype=out_dtype)
    torch.testing.assert_close(y, w8a8(*given, bias, out_dtype=out_dtype))


def unpacked(weight):
    return torch.stack([weight & 15, weight >> 4], dim=-1).flatten(-2)


def w4a16(x, weight, scales, zeros=None, bias=None):
    zero = torch.full_like(scales, 8) if zeros is None else zeros
    groups = weight.shape[1] * 2 // scales.shape[1]
    zero, scale = (t.to(scales.dtype).repeat_interleave(groups, 1) for t in (zero, scales))
    y = x @ ((unpacked(weight).to(scales.dtype) - zero) * scale).to(x.dtype).T
    return y if bias is None else y + bias


def of_codes(m=5, n=11, k=64, groups=4, zeros=False, bias=False):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        codes = torch.randint(0, 256, (n, k // 2), generator=random, dtype=torch.uint8)
        made = {"x": normal(m, k), "weight": codes, "scales": normal(n, groups).abs()}
        if zeros:
            made["zeros"] = torch.randint(0, 16, (n, groups), generator=random, dtype=torch.uint8)
        return made | ({"bias": normal(n)} if bias else {})

    return Case(tile_nn.linear_w4a16, w4a16, arguments)


CODES = {
    ("one row", "float32"): of_codes(m=1),
    ("with zeros", "bfloat16"): of_codes(zeros=True, bias=True),
    ("one group", "float16"): of_codes(m=3, n=7, k=34, groups=1),
}


@pytest.mark.parametrize("row", CODES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_products_of_codes(target, row):
    require_accurate(CODES[row], row[1], target)


@pytest.mark.parametrize("target", EMULATED)
def test_products_emulated(target):
    require_accurate(CODES["with zeros", "bfloat16"], "bfloat16", target)


def test_gradients_of_what_codes_multiply():
    require_gradients(CODES["one row", "float32"], "float32")


def nf4(x, weight, absmax, bias=None):
    codes = torch.stack([weight >> 4, weight & 15], dim=-1).flatten(-2).long()
    wide = torch.promote_types(absmax.dtype, torch.float32)
    scale = absmax.to(wide).repeat_interleave(codes.shape[1] // absmax.shape[1], 1)
    y = x @ (torch.tensor(NF4, dtype=torch.float32)[codes] * scale).to(x.dtype).T
    return y if bias is None else y + bias


def of_normal_floats(m, n=11, k=64, groups=4, bias=False):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        codes = torch.randint(0, 256, (n, k // 2), generator=random, dtype=torch.uint8)
        made = {"x": normal(m, k), "weight": codes, "absmax": normal(n, groups).abs()}
        return made | ({"bias": normal(n)} if bias else {})

    return Case(tile_nn.linear_nf4, nf4, arguments)


NORMAL = {
    ("one row", "float32"): of_normal_floats(1, bias=True),
    ("rows", "bfloat16"): of_normal_floats(5),
    ("one group", "float16"): of_normal_floats(3, n=7, k=34, groups=1),
    ("wide", "float64"): of_normal_floats(2, n=3),
}


@pytest.mark.parametrize("row", NORMAL, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_products_of_normal_floats(target, row):
    require_accurate(NORMAL[row], row[1], target)


@pytest.mark.parametrize("target", EMULATED)
def test_products_of_normal_floats_emulated(target):
    require_accurate(NORMAL["rows", "bfloat16"], "bfloat16", target)


def test_gradients_of_what_normal_floats_multiply():
    require_gradients(NORMAL["one row", "float32"], "float32")


def test_codes_of_normal_floats_in_their_order():
    weight = torch.arange(0, 256, 17, dtype=torch.uint8)[:, None].expand(16, 2)
    y = tile_nn.linear_nf4(torch.tensor([[0.0, 0.0, 0.0, 1.0]]), weight, torch.ones(16, 1))
    assert torch.equal(y[0], torch.tensor(NF4))
    upper = tile_nn.linear_nf4(torch.tensor([[1.0, 0.0]]), torch.tensor([[0xF0]]).byte(),
                               torch.ones(1, 1))  # fmt: skip
    assert upper.item() == 1.0


def test_nothing():
    none = tile_nn.linear_nf4(torch.empty(0, 8), torch.zeros(3, 4).byte(), torch.ones(3, 1))
    assert none.shape == (0, 3)
    q, scale = tile_nn.quantize_int8(torch.empty(0, 8), group_size=4)
    assert (q.shape, scale.shape) == ((0, 8), (0, 2))
