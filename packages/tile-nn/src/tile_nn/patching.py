"""Models of transformers that run the kernels.

Nothing is replaced but how layers compute: parameters, hooks and names stay, and `unpatch` brings
everything back. Norms, gated layers and experts are recognised by what they compute; attention is
changed by the interface that transformers has for it.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_nn.attention_interface import CALLS, count_calls, register_attention
from tile_nn.recognition import Run, run_of

_STATE = "_tile_nn_patch"


def patch(model: Any) -> Counter[str]:
    """Let a model's norms, gated layers and attention run the kernels.

    Parameters
    ----------
    model
        A ``torch.nn.Module``, changed in place: layers whose classes are called ``…RMSNorm``,
        ``…MLP`` or ``…Experts`` and that compute what those of Llama, Gemma, gpt-oss, Phi-3 or
        Mixtral do, and attention of models of transformers.

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
    known = [(x, run_of(x)) for x in layers]
    changed = [(x, _with_count(*found, calls)) for x, found in known if found is not None]
    if not changed:
        raise FrontendTypeError(
            f"tile_nn.patch: no layer of {type(model).__name__} is known",
            span=calling_span(),
            hint="known are classes called ...RMSNorm, ...MLP and ...Experts that compute what "
            "those of Llama, Gemma, gpt-oss, Phi-3 or Mixtral do; tile_nn.register_attention() is "
            "for attention alone",
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
        vars(layer).pop(CALLS, None)
    if hasattr(model, _STATE):
        delattr(model, _STATE)


def _with_count(name: str, run: Run, calls: Counter[str]) -> Callable[..., Any]:
    """Return the method of a layer that counts its calls."""

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return run(self, *args, **kwargs)

    return forward


def _attention_of(model: Any, calls: Counter[str]) -> str | None:
    """Let attention run the kernel, where transformers is; return what it ran before."""
    if not hasattr(model, "set_attn_implementation"):
        return None
    before: str = model.config._attn_implementation
    model.set_attn_implementation(register_attention())
    count_calls(model, calls)
    return before
