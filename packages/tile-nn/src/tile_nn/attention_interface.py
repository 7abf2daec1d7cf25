"""The attention interface of transformers, by `tile_nn.attention`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendValueError, MissingPackage
from tile_nn.modules import kernel

NAME = "tile_nn"
CALLS = "_tile_nn_calls"
"""The attribute of a layer of attention that counts calls, if it has it."""

INF = float("inf")


def register_attention(name: str = NAME) -> str:
    """Make attention known to transformers: an ``attn_implementation`` of models.

    Parameters
    ----------
    name
        What models are to call it. Masks are those that transformers makes for torch's own
        attention.

    Returns
    -------
    name
        For ``from_pretrained``, ``from_config`` and ``model.set_attn_implementation``.

    Raises
    ------
    MissingPackage
        If transformers is not installed.

    Notes
    -----
    Grouped heads, windows, soft caps, sinks and biases of positions are parts of the kernel;
    dropout is refused when it is asked for.
    """
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError as error:
        raise MissingPackage(
            "tile_nn.register_attention: transformers cannot be imported",
            span=calling_span(),
            hint="pip install 'transformers>=5'",
        ) from error
    AttentionInterface.register(name, attention_of_transformers)
    AttentionMaskInterface.register(name, sdpa_mask)
    return name


def attention_of_transformers(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, dropout: float = 0.0,
    scaling: float | None = None, is_causal: bool | None = None,
    sliding_window: int | None = None, softcap: float | None = None, s_aux: Any = None,
    position_bias: Any = None, **others: Any,
) -> tuple[Any, None]:  # fmt: skip
    """Compute what transformers asks for.

    Parameters
    ----------
    module
        The layer, whose `is_causal` stands where `is_causal` is None.
    query, key, value
        ``(batch, heads, t, d)``, ``(batch, kv_heads, s, d)``, ``(batch, kv_heads, s, dv)``.
    attention_mask
        ``(batch, 1, t, s)``, bool or floats to add, with causality and windows in it; None: they
        are the kernel's.
    scaling, softcap, s_aux, position_bias
        As `tile_nn.attention` has ``softmax_scale``, ``softcap``, ``sinks``, and a mask of floats.
    sliding_window
        How many keys a query sees, its own counted; both sides if it is not causal.

    Returns
    -------
    out, None
        ``(batch, t, heads, dv)``, and no weights.

    Raises
    ------
    FrontendValueError
        If dropout, or something else that the kernel does not know, is asked for.

    Notes
    -----
    Without a mask, queries of an empty cache of fixed length come first among the keys: as torch's
    own attention counts, those keys are left out that no query sees.
    """
    unknown = [n for n in ("head_mask",) if others.get(n) is not None]
    if dropout or unknown:
        raise FrontendValueError(
            f"tile_nn.attention knows no {', '.join([*unknown, *['dropout'] * bool(dropout)])}",
            span=calling_span(),
            hint="attention_dropout=0.0 in the model's configuration, or model.eval()",
        )
    calls = getattr(module, CALLS, None)
    if calls is not None:
        calls["attention"] += 1
    asked = getattr(module, "is_causal", True) if is_causal is None else is_causal
    length = query.shape[2]
    causal = bool(asked) and attention_mask is None and length > 1
    if causal and key.shape[2] > length:
        key, value = key[:, :, :length], value[:, :, :length]
        position_bias = None if position_bias is None else position_bias[..., :length]
    side = -1 if sliding_window is None or attention_mask is not None else sliding_window - 1
    out = kernel("attention")(
        _in_batches(query, key), key, value, _with_bias(attention_mask, position_bias), s_aux,
        causal=causal, softmax_scale=scaling, window_size=(side, -1 if asked else side),
        softcap=softcap or 0.0,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), None


def count_calls(model: Any, calls: Counter[str]) -> None:
    """Let layers of attention count their calls."""
    for layer in model.modules():
        if hasattr(layer, "is_causal"):
            setattr(layer, CALLS, calls)


def _in_batches(query: Any, key: Any) -> Any:
    """Return queries for each batch: learnt ones may be one for all."""
    return query.expand(key.shape[0], -1, -1, -1) if query.shape[0] == 1 else query


def _with_bias(mask: Any, bias: Any) -> Any:
    """Return what is added to scores, and -inf where nothing may be seen."""
    if mask is None or bias is None:
        return mask if bias is None else bias
    return bias.masked_fill(~mask, -INF) if not mask.is_floating_point() else bias + mask
