"""`tile_nn.rotary`, against plain torch."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, HOST, Case, in_turn, require_accurate, require_gradients


def meant(x, cos, sin, k=None, *, interleaved=False, layout="BHTD"):
    cos, sin = (t[None] if t.ndim == 2 else t for t in (cos, sin))
    cos, sin = (t.unsqueeze(1 if layout == "BHTD" else 2) for t in (cos, sin))
    turned = tuple(one(y, cos, sin, interleaved) for y in (x, k) if y is not None)
    return turned[0] if k is None else turned


def one(x, cos, sin, interleaved):
    r = 2 * cos.shape[-1]
    part, rest = x[..., :r], x[..., r:]
    pairs = part.unflatten(-1, (-1, 2)) if interleaved else part.unflatten(-1, (2, -1)).mT
    a, b = pairs.unbind(-1)
    turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1)
    turned = turned if interleaved else turned.mT
    return torch.cat([turned.flatten(-2).to(x.dtype), rest], dim=-1)


def case(t=7, d=16, r=None, heads=3, kv_heads=None, batched=False, **settings):
    def arguments(random):
        def normal(heads):
            shape = (2, heads, t, d) if settings.get("layout") != "BTHD" else (2, t, heads, d)
            return torch.randn(shape, generator=random, dtype=torch.float64)

        angles = 6 * torch.rand((*((2,) if batched else ()), t, (r or d) // 2), generator=random)
        made = {"x": normal(heads), "cos": angles.double().cos(), "sin": angles.double().sin()}
        return made if kv_heads is None else made | {"k": normal(kv_heads)}

    return Case(tile_nn.rotary, meant, arguments, settings)


CASES = {
    "halves": case(),
    "neighbours": case(t=5, interleaved=True),
    "a part": case(t=11, d=24, r=8, batched=True),
    "a part, neighbours": case(t=3, d=20, r=12, interleaved=True, kv_heads=1),
    "heads last": case(t=13, layout="BTHD", kv_heads=2),
    "heads last, a table each": case(t=5, layout="BTHD", batched=True),
    "queries and keys": case(t=1, kv_heads=1, batched=True),
    "one pair": case(d=2),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES))
@pytest.mark.parametrize("target", HOST)
def test_on_the_host(target, dtype, name):
    require_accurate(CASES[name], dtype, target)


@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["a part, neighbours"], "float16", target)


@pytest.mark.parametrize("name", ["halves", "a part, neighbours", "heads last"])
def test_gradients(name):
    require_gradients(CASES[name], "float32")


def test_nothing():
    tables = torch.empty(0, 4), torch.empty(0, 4)
    assert tile_nn.rotary(torch.empty(2, 3, 0, 8), *tables).shape == (2, 3, 0, 8)
    x = torch.randn(1, 2, 3, 8)
    assert torch.equal(tile_nn.rotary(x, torch.empty(3, 0), torch.empty(3, 0)), x)
