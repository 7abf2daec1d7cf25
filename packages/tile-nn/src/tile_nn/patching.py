"""Models of transformers that run the kernels: Llama, Qwen3 and Mixtral.

Nothing is replaced but how layers compute: parameters, hooks and names stay, and `unpatch` brings
everything back. Norms and gated layers are found by the names of their classes; attention by the
interface that transformers has for it.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_nn.modules import kernel

NORMS = ("LlamaRMSNorm", "Qwen3RMSNorm", "Qwen3MoeRMSNorm", "MixtralRMSNorm")
GATED = ("LlamaMLP", "Qwen3MLP", "Qwen3MoeMLP")
INTERFACE = "tile_nn"

_STATE = "_tile_nn_patch"
_CALLS = "_tile_nn_calls"
_UNKNOWN = ("position_bias", "head_mask")


def patch(model: Any) -> Counter[str]:
    """Let a model's norms, gated layers and attention run the kernels.

    Parameters
    ----------
    model
        A ``torch.nn.Module`` with layers of Llama, Qwen3 or Mixtral, in place.

    Returns
    -------
    calls
        How often each kernel was called since: it counts on. Calls that torch has compiled are
        counted when they are traced.

    Raises
    ------
    FrontendTypeError
        If no layer is one of those that are known.
    FrontendValueError
        If the model is patched already.
    """
    if hasattr(model, _STATE):
        raise FrontendValueError(
            "tile_nn.patch: the model is patched already", span=calling_span(),
            hint="tile_nn.unpatch(model) first",
        )  # fmt: skip
    calls: Counter[str] = Counter()
    layers = [*model.modules()]
    changed = [(x, f) for x in layers if (f := _forward_for(x, calls)) is not None]
    if not changed:
        raise FrontendTypeError(
            f"tile_nn.patch: no layer of {type(model).__name__} is known",
            span=calling_span(),
            hint=f"known are {', '.join((*NORMS, *GATED))}",
        )
    before = _attention_of(model, calls)
    for layer, forward in changed:
        layer.forward = types.MethodType(forward, layer)
    setattr(model, _STATE, ([layer for layer, _ in changed], before))
    return calls


def unpatch(model: Any) -> None:
    """Let a model compute as it did before `patch`; one that is not patched stays as it is."""
    layers, before = getattr(model, _STATE, ([], None))
    for layer in layers:
        del layer.forward
    if before is not None:
        model.set_attn_implementation(before)
    for layer in model.modules():
        vars(layer).pop(_CALLS, None)
    if hasattr(model, _STATE):
        delattr(model, _STATE)


def _forward_for(layer: Any, calls: Counter[str]) -> Callable[..., Any] | None:
    """Return how a layer computes with kernels; None if it is none that is known."""
    name = type(layer).__name__
    if name in NORMS and "forward" not in vars(layer):
        return _norm(calls)
    is_silu = type(getattr(layer, "act_fn", None)).__name__ in ("SiLU", "SiLUActivation")
    if name in GATED and is_silu and "forward" not in vars(layer):
        return _gated(calls)
    return None


def _norm(calls: Counter[str]) -> Callable[..., Any]:
    def forward(self: Any, hidden_states: Any) -> Any:
        calls["rms_norm"] += 1
        return kernel("rms_norm")(hidden_states, self.weight, eps=self.variance_epsilon)

    return forward


def _gated(calls: Counter[str]) -> Callable[..., Any]:
    def forward(self: Any, x: Any) -> Any:
        calls["swiglu"] += 1
        return self.down_proj(kernel("swiglu")(self.gate_proj(x), self.up_proj(x)))

    return forward


def _attention_of(model: Any, calls: Counter[str]) -> str | None:
    """Let attention run the kernel, where transformers is; return what it ran before."""
    if not hasattr(model, "set_attn_implementation"):
        return None
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    before: str = model.config._attn_implementation
    AttentionInterface.register(INTERFACE, attention_of_transformers)
    AttentionMaskInterface.register(INTERFACE, sdpa_mask)
    model.set_attn_implementation(INTERFACE)
    for layer in model.modules():
        if hasattr(layer, "is_causal"):
            setattr(layer, _CALLS, calls)
    return before


def attention_of_transformers(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, dropout: float = 0.0,
    scaling: float | None = None, is_causal: bool | None = None,
    sliding_window: int | None = None, softcap: float | None = None, s_aux: Any = None,
    **others: Any,
) -> tuple[Any, None]:  # fmt: skip
    """Compute what transformers asks for, by `tile_nn.attention`; its attention interface.

    Raises
    ------
    FrontendValueError
        If dropout, or something else that the kernel does not know, is asked for.
    """
    unknown = [name for name in _UNKNOWN if others.get(name) is not None]
    if dropout or unknown:
        raise FrontendValueError(
            f"tile_nn.attention knows no {', '.join([*unknown, *['dropout'] * bool(dropout)])}",
            span=calling_span(),
            hint="attention_dropout=0.0 in the model's configuration, or model.eval()",
        )
    calls = getattr(module, _CALLS, None)
    if calls is not None:
        calls["attention"] += 1
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    window = (-1, -1)
    if attention_mask is None and sliding_window is not None:
        window = (sliding_window - 1, -1)
    out = kernel("attention")(
        query, key, value, attention_mask, s_aux, causal=bool(causal) and attention_mask is None,
        softmax_scale=scaling, window_size=window, softcap=softcap or 0.0,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), None
