"""What transformers asks attention for, with and without transformers."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from tile_core.errors import TileError
from tile_nn.attention_interface import attention_of_transformers

LAYER = SimpleNamespace(is_causal=True)


def heads(t=5, s=5, batch=2, of_query=2):
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(of_query, 4, t, 8),
        torch.randn(batch, 2, s, 8),
        torch.randn(batch, 2, s, 6),
    )
    return q, k, v


def usual(q, k, v, mask=None, **settings):
    out = F.scaled_dot_product_attention(
        q.expand(k.shape[0], -1, -1, -1), k, v, mask, enable_gqa=True, **settings
    )
    return out.transpose(1, 2)


def found(q, k, v, mask=None, layer=LAYER, **settings):
    out, weights = attention_of_transformers(layer, q, k, v, mask, **settings)
    assert weights is None
    assert out.is_contiguous()
    return out


def test_causality_is_that_of_the_layer():
    q, k, v = heads()
    torch.testing.assert_close(found(q, k, v), usual(q, k, v, is_causal=True))
    torch.testing.assert_close(found(q, k, v, is_causal=False), usual(q, k, v))
    both = found(q, k, v, layer=SimpleNamespace(is_causal=False), scaling=0.5)
    torch.testing.assert_close(both, usual(q, k, v, scale=0.5))


def test_a_cache_of_fixed_length_holds_queries_first():
    q, k, v = heads(t=5, s=9)
    torch.testing.assert_close(found(q, k, v), usual(q, k[:, :, :5], v[:, :, :5], is_causal=True))
    q = q[:, :, :1]
    torch.testing.assert_close(found(q, k, v), usual(q, k, v))


def test_a_mask_says_all():
    q, k, v = heads(t=3, s=7)
    mask = torch.arange(7) <= torch.tensor([[[[1], [6], [3]]]])
    torch.testing.assert_close(found(q, k, v, mask, sliding_window=2), usual(q, k, v, mask))


def test_windows_count_the_query_itself():
    q, k, v = heads()
    i, j = torch.arange(5)[:, None], torch.arange(5)
    causal = (j <= i) & (j > i - 2)
    torch.testing.assert_close(found(q, k, v, sliding_window=2), usual(q, k, v, causal))
    near = (i - j).abs() < 2
    torch.testing.assert_close(
        found(q, k, v, sliding_window=2, is_causal=False), usual(q, k, v, near)
    )


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_biases_of_positions(kind):
    q, k, v = heads()
    bias, sees = torch.randn(1, 4, 5, 5), torch.ones(5, 5, dtype=torch.bool).tril()
    hidden = torch.zeros(5, 5).masked_fill(~sees, float("-inf"))
    mask = {"none": None, "bool": sees, "float": hidden}[kind]
    out = found(q, k, v, mask, position_bias=bias)
    torch.testing.assert_close(out, usual(q, k, v, bias + hidden))


def test_biases_in_a_cache_of_fixed_length():
    q, k, v = heads(t=5, s=9)
    bias = torch.randn(1, 4, 5, 9)
    out = found(q, k, v, position_bias=bias)
    assert torch.equal(out, found(q, k[:, :, :5], v[:, :, :5], position_bias=bias[..., :5]))


def test_learnt_queries_are_one_for_all():
    q, k, v = heads(of_query=1)
    torch.testing.assert_close(found(q, k, v, is_causal=False), usual(q, k, v))


def test_what_is_refused():
    with pytest.raises(TileError) as caught:
        found(*heads(), dropout=0.1, head_mask=torch.ones(4))
    assert str(caught.value).splitlines()[0] == (
        "[TL1002] tile_nn.attention knows no head_mask, dropout"
    )
    assert str(caught.value).splitlines()[-1] == (
        "hint: attention_dropout=0.0 in the model's configuration, or model.eval()"
    )


def test_registered(monkeypatch):
    """A stand-in shows what is registered; `test_patching` has models, if transformers is here."""
    known = {}
    package, masks = (
        types.ModuleType("transformers"),
        types.ModuleType("transformers.masking_utils"),
    )
    for name in ("AttentionInterface", "AttentionMaskInterface"):
        interface = SimpleNamespace(register=lambda n, f, kind=name: known.update({(kind, n): f}))
        setattr(package, name, interface)
    masks.sdpa_mask = object()
    monkeypatch.setitem(sys.modules, "transformers", package)
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", masks)
    assert tile_nn.register_attention("mine") == "mine"
    assert known == {
        ("AttentionInterface", "mine"): attention_of_transformers,
        ("AttentionMaskInterface", "mine"): masks.sdpa_mask,
    }


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError) as caught:
        tile_nn.register_attention()
    lines = str(caught.value).splitlines()
    assert lines[0] == "[TL7006] tile_nn.register_attention: transformers cannot be imported"
    assert lines[-1] == "hint: pip install 'transformers>=5'"
