"""Mamba-2: states of chunks, and outputs of chunks."""

from __future__ import annotations

from typing import Any

import torch
from problem import Family, Sizes, Tensors, empty, random, run_main


def _shape(sizes: Sizes) -> tuple[int, ...]:
    """Return batch, tokens, chunk, heads, headdim and dstate."""
    names = ("batch", "tokens", "chunk", "heads", "headdim", "dstate")
    return tuple(sizes[name] for name in names)


def _decays(sizes: Sizes, device: Any, generator: Any) -> tuple[Any, Any]:
    """Return dt, and the running sum of what decays within each chunk."""
    batch, tokens, chunk, heads, _, _ = _shape(sizes)
    shape = (batch, heads, tokens // chunk, chunk)
    dt = torch.rand(shape, device=device, generator=generator)
    falls = torch.rand(shape, device=device, generator=generator)
    return dt, (-0.1 * falls).cumsum(-1)


def _state_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    batch, tokens, _, heads, headdim, dstate = _shape(sizes)
    return [
        random((batch, tokens, 1, dstate), torch.float16, device, generator),
        random((batch, tokens, heads, headdim), torch.float16, device, generator),
        *_decays(sizes, device, generator),
    ]


def _state_outputs(sizes: Sizes, device: Any) -> Tensors:
    batch, tokens, chunk, heads, headdim, dstate = _shape(sizes)
    return [empty((batch, tokens // chunk, heads, headdim, dstate), torch.float32, device)]


def state_in_torch(b: Any, x: Any, dt: Any, falls: Any) -> Any:
    """Return the states of chunks, of one or more sequences, in the type of `x`."""
    chunks, chunk = dt.shape[2:]
    weight = (torch.exp(falls[..., -1:] - falls) * dt).to(x.dtype)
    wide_x = x.unflatten(1, (chunks, chunk))
    scaled = wide_x * weight.permute(0, 2, 3, 1)[..., None]
    return torch.einsum("bctn,bcthp->bchpn", b[:, :, 0].unflatten(1, (chunks, chunk)), scaled)


def _state_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    b, x, dt, falls = inputs
    of_each = [
        state_in_torch(b[i : i + 1].float(), x[i : i + 1].float(), dt[i : i + 1], falls[i : i + 1])
        for i in range(x.shape[0])
    ]
    return [torch.cat(of_each)]


def _state_work(sizes: Sizes) -> tuple[float, float]:
    batch, tokens, chunk, heads, headdim, dstate = _shape(sizes)
    flops = 2.0 * batch * tokens * heads * headdim * dstate
    read = batch * tokens * (2.0 * heads * headdim + 2.0 * dstate + 8.0 * heads)
    return flops, read + 4.0 * batch * (tokens // chunk) * heads * headdim * dstate


STATE = Family(
    inputs=_state_inputs,
    outputs=_state_outputs,
    reference=_state_reference,
    launch=run_main,
    work=_state_work,
)


def _scan_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    batch, tokens, chunk, heads, headdim, dstate = _shape(sizes)
    chunks, half = tokens // chunk, torch.float16
    states = (batch, chunks, heads, headdim, dstate)
    return [
        random((batch, chunks, 1, chunk, chunk), half, device, generator),
        random((batch, tokens, heads, headdim), half, device, generator),
        *_decays(sizes, device, generator),
        random((batch, tokens, 1, dstate), half, device, generator),
        random(states, half, device, generator, scale=dstate**-0.5),
        random((heads,), torch.float32, device, generator),
    ]


def _scan_outputs(sizes: Sizes, device: Any) -> Tensors:
    batch, tokens, _, heads, headdim, _ = _shape(sizes)
    return [empty((batch, tokens, heads, headdim), torch.float16, device)]


def scan_in_torch(cb: Any, x: Any, dt: Any, falls: Any, c: Any, states: Any, skip: Any) -> Any:
    """Return the outputs of chunks, of one or more sequences, in the type of `x`."""
    chunks, chunk = dt.shape[2:]
    decay = torch.exp(falls[..., :, None] - falls[..., None, :]).tril_() * dt[..., None, :]
    weights = cb[:, :, 0][:, None] * decay.to(x.dtype)
    wide_x = x.unflatten(1, (chunks, chunk))
    y = torch.einsum("bhcts,bcshp->bcthp", weights, wide_x)
    before = torch.einsum("bctn,bchpn->bcthp", c[:, :, 0].unflatten(1, (chunks, chunk)), states)
    y += before * torch.exp(falls).to(x.dtype).permute(0, 2, 3, 1)[..., None]
    return (y + wide_x * skip.to(x.dtype)[:, None]).flatten(1, 2)


def _scan_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    *of_sequences, skip = inputs
    of_each = [
        scan_in_torch(*(tensor[i : i + 1].float() for tensor in of_sequences), skip)
        for i in range(inputs[1].shape[0])
    ]
    return [torch.cat(of_each)]


def _scan_work(sizes: Sizes) -> tuple[float, float]:
    batch, tokens, chunk, heads, headdim, dstate = _shape(sizes)
    per_token = chunk * heads * headdim + 2.0 * heads * headdim * dstate
    read = batch * tokens * (2.0 * heads * headdim + 2.0 * chunk + 2.0 * dstate + 8.0 * heads)
    states = 2.0 * batch * (tokens // chunk) * heads * headdim * dstate
    return batch * tokens * per_token, read + states + 2.0 * batch * tokens * heads * headdim


SCAN = Family(
    inputs=_scan_inputs,
    outputs=_scan_outputs,
    reference=_scan_reference,
    launch=run_main,
    work=_scan_work,
    single=5e-2,
)
