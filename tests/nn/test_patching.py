"""Models that run the kernels: a small one in plain torch, and those of transformers if there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tile_nn
from tile_core.errors import TileError
from tile_nn.modules import RMSNorm, Rotary, SwiGLU


class LlamaRMSNorm(nn.Module):
    """As transformers has it."""

    def __init__(self, size):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.rand(size)), 1e-6

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class LlamaMLP(SwiGLU):
    """As transformers has it."""

    def __init__(self, size, inner):
        super().__init__(size, inner)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Model(nn.Module):
    """Two layers, and logits."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(LlamaRMSNorm(12), LlamaMLP(12, 20)) for _ in range(2)
        )
        self.norm, self.head = LlamaRMSNorm(12), nn.Linear(12, 7)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(self.norm(x))


def logits_and_gradients(model, *args, **kwargs):
    model.zero_grad()
    logits = getattr(made := model(*args, **kwargs), "logits", made)
    logits.float().square().mean().backward()
    return logits.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


def require_same_when_patched(model, *args, counted, **kwargs):
    wanted = logits_and_gradients(model, *args, **kwargs)
    calls = tile_nn.patch(model)
    found = logits_and_gradients(model, *args, **kwargs)
    assert calls == counted
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    tile_nn.unpatch(model)
    assert not [name for layer in model.modules() for name in vars(layer) if "tile_nn" in name]
    again = logits_and_gradients(model, *args, **kwargs)
    assert calls == counted
    assert torch.equal(again[0], wanted[0])


def test_a_model_computes_the_same():
    torch.manual_seed(0)
    require_same_when_patched(Model(), torch.randn(5, 12), counted={"rms_norm": 3, "swiglu": 2})


def test_a_patched_model_is_compiled():
    model, x = Model(), torch.randn(3, 12)
    wanted = model(x)
    calls = tile_nn.patch(model)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), wanted)
    assert calls == {"rms_norm": 3, "swiglu": 2}


def test_mistakes():
    model = Model()
    tile_nn.patch(model)
    with pytest.raises(TileError, match=r"\[TL1002\] tile_nn.patch: the model is patched already"):
        tile_nn.patch(model)
    with pytest.raises(TileError, match=r"\[TL1003\] tile_nn.patch: no layer of Linear is known"):
        tile_nn.patch(nn.Linear(2, 2))
    tile_nn.unpatch(nn.Linear(2, 2))


def test_layers():
    x = torch.randn(2, 3, 5, 8)
    norm, gemma = RMSNorm(8), RMSNorm(8, offset=1.0, casting_mode="gemma")
    torch.testing.assert_close(norm(x), nn.functional.rms_norm(x, (8,), eps=1e-6))
    torch.testing.assert_close(gemma(x), norm(x))
    assert SwiGLU(8, 20)(x).shape == x.shape
    rotary = Rotary(8, 16)
    q, k = rotary(x, x[:, :1])
    later, _ = rotary(x[:, :, 2:], x[:, :, 2:], start=2)
    assert torch.equal(later, q[:, :, 2:])
    torch.testing.assert_close(q.norm(dim=-1), x.norm(dim=-1))
    assert k.shape == (2, 1, 5, 8)


SMALL = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "use_cache": False,
}  # fmt: skip
COUNTED = {
    "Llama": {"rms_norm": 5, "swiglu": 2, "attention": 2},
    "Qwen3": {"rms_norm": 9, "swiglu": 2, "attention": 2},
    "Mixtral": {"rms_norm": 5, "attention": 2},
}


@pytest.mark.parametrize("family", COUNTED)
def test_models_of_transformers(family):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    experts = {"num_local_experts": 4} if family == "Mixtral" else {}
    config = getattr(transformers, f"{family}Config")(**SMALL, **experts)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    ids = torch.randint(0, 50, (2, 11))
    padding = torch.ones(2, 11, dtype=torch.int64)
    padding[1, :4] = 0
    require_same_when_patched(model, ids, counted=COUNTED[family])
    require_same_when_patched(model, ids, attention_mask=padding, counted=COUNTED[family])
