"""Which layers compute what a kernel does: found by names, and tried on small numbers.

A layer is taken for a norm, a gated layer or experts if its class is called so, if it has the
parameters of one, and if a copy with small parameters of its own gives what the formula gives. So
families whose norms round in other places, or do more, are told apart without a list of them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import skip_init

from tile_nn.modules import kernel

NORM_SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"casting_mode": "llama"},
    {"casting_mode": "gemma"},
    {"casting_mode": "gemma", "offset": 1.0},
)
GATES: Mapping[str, Callable[[Any], Any]] = {
    "swiglu": F.silu,
    "geglu": lambda x: F.gelu(x, approximate="tanh"),
    "geglu, exact": F.gelu,
}

Run = Callable[..., Any]
"""Takes the layer, and what it is called with."""


def run_of(layer: Any) -> tuple[str, Run] | None:
    """Return a kernel's name, and how a layer runs it; None if the layer is none that is known."""
    name = type(layer).__name__
    for ending, (arguments, found) in _KINDS.items():
        if name.endswith(ending) and "forward" not in vars(layer):
            is_called_so = len(inspect.signature(layer.forward).parameters) == arguments
            return found(layer) if is_called_so else None
    return None


def _norm(layer: Any) -> tuple[str, Run] | None:
    eps = getattr(layer, "variance_epsilon", getattr(layer, "eps", None))
    if not isinstance(eps, float) or [n for n, _ in layer.named_parameters()] != ["weight"]:
        return None
    for settings in NORM_SETTINGS:
        if all(_is_norm(layer, eps, settings, d) for d in (torch.float32, torch.bfloat16)):
            return "rms_norm", _run_norm(eps, settings)
    return None


def _run_norm(eps: float, settings: Mapping[str, Any]) -> Run:
    def run(layer: Any, x: Any) -> Any:
        return kernel("rms_norm")(x, layer.weight, eps=eps, **settings)

    return run


def _is_norm(layer: Any, eps: float, settings: Mapping[str, Any], dtype: torch.dtype) -> bool:
    """Tell by numbers: those of 16 bits show where a norm rounds."""
    weight, x = (_numbers(*shape).to(dtype) for shape in ((64,), (32, 64)))
    found = _tried(layer, (x,), {"weight": nn.Parameter(weight)}, {})
    wide = x.float()
    y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    if settings["casting_mode"] == "llama":
        wanted = y.to(dtype) * weight
    else:
        wanted = (y * (weight.float() + settings.get("offset", 0.0))).to(dtype)
    return _is_close(found, wanted)


def _gated(layer: Any) -> tuple[str, Run] | None:
    names = {n for n, _ in layer.named_children()} - {"act_fn", "activation_fn"}
    packed = names == {"gate_up_proj", "down_proj"}
    if not packed and names != {"gate_proj", "up_proj", "down_proj"}:
        return None
    small = {n: _product(8, 24 if packed else 12) for n in names - {"down_proj"}}
    small["down_proj"] = _product(12, 8)
    x = _numbers(16, 8)
    found = _tried(layer, (x,), {}, {**dict(layer.named_children()), **small})
    for name, gate in GATES.items():
        if packed:
            a, b = small["gate_up_proj"](x).chunk(2, dim=-1)
        else:
            a, b = small["gate_proj"](x), small["up_proj"](x)
        if _is_close(found, small["down_proj"](gate(a) * b)):
            return _run_gated(name, packed)
    return None


def _run_gated(name: str, packed: bool) -> tuple[str, Run]:
    settings = {} if name == "swiglu" else {"approximate": "none" if "exact" in name else "tanh"}
    used = name.partition(",")[0]
    used = {"swiglu": "silu_and_mul", "geglu": "gelu_and_mul"}[used] if packed else used

    def run(layer: Any, x: Any) -> Any:
        given = (layer.gate_up_proj(x),) if packed else (layer.gate_proj(x), layer.up_proj(x))
        return layer.down_proj(kernel(used)(*given, **settings))

    return used, run


def _experts(layer: Any) -> tuple[str, Run] | None:
    shapes = {n: tuple(p.shape) for n, p in layer.named_parameters()}
    if {*shapes} != {"gate_up_proj", "down_proj"} or not hasattr(layer, "num_experts"):
        return None
    gate_up, down = _numbers(3, 16, 8) / 3, _numbers(3, 8, 8) / 3
    x, weights = _numbers(7, 8), _numbers(7, 2).abs()
    ids = torch.arange(14).reshape(7, 2) % 3
    parameters = {"gate_up_proj": nn.Parameter(gate_up), "down_proj": nn.Parameter(down)}
    tried = _tried(
        layer, (x, ids, weights), parameters, dict(layer.named_children()), num_experts=3
    )
    for activation, name in (("silu", "swiglu"), ("gelu_tanh", "geglu"), ("gelu", "geglu, exact")):
        a, b = torch.einsum("td,tkfd->tkf", x, gate_up[ids]).chunk(2, dim=-1)
        made = torch.einsum("tkf,tkdf->tkd", GATES[name](a) * b, down[ids])
        if _is_close(tried, (made * weights[..., None]).sum(1)):
            return "fused_experts", _run_experts(activation)
    return None


def _run_experts(activation: str) -> Run:
    def run(layer: Any, x: Any, ids: Any, weights: Any) -> Any:
        given = x, layer.gate_up_proj, layer.down_proj, weights, ids
        return kernel("fused_experts")(*given, activation=activation)

    return run


def _tried(
    layer: Any, given: tuple[Any, ...], parameters: Mapping[str, Any], modules: Mapping[str, Any],
    **others: Any,
) -> Any:  # fmt: skip
    """Return what a layer gives with other parameters and parts; None if it does not take them."""
    tried = copy.copy(layer)
    tried.__dict__ |= {"_parameters": dict(parameters), "_modules": dict(modules), **others}
    try:
        with torch.no_grad():
            return type(layer).forward(tried, *given)
    except Exception:  # whatever it needs besides, it is none of those that are known
        return None


def _is_close(found: Any, wanted: torch.Tensor) -> bool:
    """Tell whether all numbers are right but for the order of sums, which rounds few otherwise."""
    if not isinstance(found, torch.Tensor) or found.dtype != wanted.dtype:
        return False
    if found.shape != wanted.shape:
        return False
    few = (found != wanted).double().mean() <= 0.02 or found.dtype == torch.float32
    eps = torch.finfo(wanted.dtype).eps
    return bool(few) and torch.allclose(found, wanted, rtol=4 * eps, atol=16 * eps)


def _numbers(*shape: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=random, dtype=torch.float32, device="cpu")


def _product(size: int, results: int) -> Any:
    """Return a product; torch's own generator, which users may have seeded, is left as it is."""
    linear = skip_init(nn.Linear, size, results, dtype=torch.float32, device="cpu")
    linear.weight.data, linear.bias.data = _numbers(results, size) / 2, _numbers(results)
    return linear


_KINDS: Mapping[str, tuple[int, Callable[[Any], tuple[str, Run] | None]]] = {
    "RMSNorm": (1, _norm),
    "MLP": (1, _gated),
    "Experts": (3, _experts),
}
"""Endings of names of classes: how many arguments their layers take, and what recognises them."""
