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
    if "attention_mask" in kwargs:  # what padding gives is nobody's
        logits = logits[kwargs["attention_mask"].bool()]
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


class GemmaRMSNorm(nn.Module):
    """As transformers has it: an offset, and one rounding."""

    def __init__(self, size):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), 1e-5

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * (1.0 + self.weight.float())).type_as(x)


class MeanRMSNorm(LlamaRMSNorm):
    """Called like a norm that is known, and another."""

    def forward(self, x):
        return super().forward(x) - x.mean()


class GemmaMLP(LlamaMLP):
    """As transformers has it."""

    def __init__(self, size, inner):
        super().__init__(size, inner)
        self.act_fn = nn.GELU(approximate="tanh")


class Phi3MLP(nn.Module):
    """As transformers has it: one product for the gate and what it lets through."""

    def __init__(self, size, inner):
        super().__init__()
        self.gate_up_proj = nn.Linear(size, 2 * inner)
        self.down_proj, self.activation_fn = nn.Linear(inner, size), nn.SiLU()

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(up * self.activation_fn(gate))


LAYERS = {
    "rms_norm": GemmaRMSNorm(12), "geglu": GemmaMLP(12, 20), "silu_and_mul": Phi3MLP(12, 20),
    "swiglu": LlamaMLP(12, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_known_by_what_they_compute(name):
    state = torch.random.get_rng_state()
    require_same_when_patched(nn.Sequential(LAYERS[name]), torch.ones(3, 12), counted={name: 1})
    assert torch.equal(torch.random.get_rng_state(), state)


class MixtralExperts(nn.Module):
    """As transformers has it."""

    def __init__(self, count, size, inner):
        super().__init__()
        self.num_experts, self.act_fn = count, nn.SiLU()
        self.gate_up_proj = nn.Parameter(torch.randn(count, 2 * inner, size) / 4)
        self.down_proj = nn.Parameter(torch.randn(count, size, inner) / 4)

    def forward(self, hidden_states, top_k_index, top_k_weights):
        y = torch.zeros_like(hidden_states)
        for e in range(self.num_experts):
            token, k = torch.where(top_k_index == e)
            gate, up = nn.functional.linear(hidden_states[token], self.gate_up_proj[e]).chunk(2, -1)
            made = nn.functional.linear(self.act_fn(gate) * up, self.down_proj[e])
            y = y.index_add(0, token, made * top_k_weights[token, k, None])
        return y


def test_experts_are_known_by_what_they_compute():
    model = nn.ModuleDict({"experts": MixtralExperts(5, 12, 10)})
    model.forward = lambda *args: model["experts"](*args)
    ids = torch.tensor([[0, 3], [3, 4], [2, 3]])
    given = torch.randn(3, 12), ids, torch.rand(3, 2)
    require_same_when_patched(model, *given, counted={"fused_experts": 1})


def test_layers_that_compute_something_else():
    others = MeanRMSNorm(12), LlamaMLP(12, 20), LlamaMLP(12, 20)
    others[1].act_fn = nn.ReLU()
    others[2].scale = nn.Linear(1, 1)
    with pytest.raises(TileError) as caught:
        tile_nn.patch(nn.Sequential(*others))
    assert str(caught.value).splitlines()[-1] == (
        "hint: known are classes called ...RMSNorm, ...MLP and ...Experts that compute what those "
        "of Llama, Gemma, gpt-oss, Phi-3 or Mixtral do; tile_nn.register_attention() is for "
        "attention alone"
    )


def test_a_norm_of_16_bits_rounds_where_the_model_rounds():
    for norm in (LlamaRMSNorm(64), GemmaRMSNorm(64)):
        norm.bfloat16().weight.data.normal_()
        x = torch.randn(50, 64).bfloat16()
        wanted = norm(x)
        tile_nn.patch(nn.Sequential(norm))
        assert (norm(x) != wanted).double().mean() < 0.02


SMALL = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "use_cache": False,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "v_head_dim": 12, "num_key_value_heads": 4,
}  # fmt: skip
EXPERTS = {"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16}
MAMBA = {"num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1, "chunk_size": 4}
FAMILIES = {
    "Llama": ({}, {"rms_norm": 5, "swiglu": 2, "attention": 2}),
    "Mistral": ({"sliding_window": 5}, {"rms_norm": 5, "swiglu": 2, "attention": 2}),
    "Qwen3": ({}, {"rms_norm": 9, "swiglu": 2, "attention": 2}),
    "Mixtral": ({"num_local_experts": 4}, {"rms_norm": 5, "attention": 2, "fused_experts": 2}),
    "DeepseekV3": (
        LATENT | EXPERTS | {"num_experts_per_tok": 2, "first_k_dense_replace": 1},
        {"rms_norm": 9, "swiglu": 2, "attention": 2, "fused_experts": 1},
    ),
    "GptOss": (
        {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
        {"rms_norm": 5, "attention": 2},
    ),
    "Gemma2": ({"sliding_window": 5}, {"rms_norm": 9, "geglu": 2, "attention": 2}),
    "Gemma3": ({"sliding_window": 5}, {"rms_norm": 13, "geglu": 2, "attention": 2}),
    "Phi3": ({}, {"rms_norm": 5, "silu_and_mul": 2, "attention": 2}),
    "Mamba2": (MAMBA, {"rms_norm": 3}),
}


def small(family):
    """Return a model with random weights."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, family + ("TextConfig" if family == "Gemma3" else "Config"))
    return getattr(transformers, f"{family}ForCausalLM")(config(**SMALL | FAMILIES[family][0]))


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_transformers(family):
    model, counted = small(family).eval(), FAMILIES[family][1]
    ids = torch.randint(3, 50, (2, 11))
    padding = torch.ones(2, 11, dtype=torch.int64)
    padding[1, :4] = 0
    require_same_when_patched(model, ids, counted=counted)
    require_same_when_patched(model, ids, attention_mask=padding, counted=counted)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_tokens_that_a_model_generates(cache):
    model = small("Mistral").eval()
    ids = torch.randint(3, 50, (2, 7))
    padding = torch.ones(2, 7, dtype=torch.int64)
    padding[0, :3] = 0
    settings = {"do_sample": False, "use_cache": True, "cache_implementation": cache}
    settings |= {"max_new_tokens": 9, "disable_compile": True}
    for mask in (None, padding):
        wanted = model.generate(ids, attention_mask=mask, **settings)
        tile_nn.patch(model)
        assert torch.equal(model.generate(ids, attention_mask=mask, **settings), wanted)
        tile_nn.unpatch(model)


def test_attention_alone():
    model = small("Llama").eval()
    ids = torch.randint(3, 50, (1, 5))
    wanted = model(ids).logits
    model.set_attn_implementation(tile_nn.register_attention("tile_nn_of_a_test"))
    torch.testing.assert_close(model(ids).logits, wanted)
