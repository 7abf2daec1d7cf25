"""Layers of torch that run the kernels: eagerly themselves, as operators where torch traces."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tile_nn.torch_ops import OPERATORS, TABLE


def kernel(name: str) -> Any:
    """Return a kernel, or while torch compiles or exports its operator, which can be traced."""
    return OPERATORS[name] if torch.compiler.is_compiling() else TABLE[name][0]


class RMSNorm(nn.Module):  # type: ignore[misc]
    """`tile_nn.rms_norm` with a weight that is learnt.

    Parameters
    ----------
    size
        The length of rows.
    eps, offset, casting_mode
        As for `tile_nn.rms_norm`; with an offset of 1 the weight begins with zeros.
    """

    def __init__(
        self, size: int, eps: float = 1e-6, *, offset: float = 0.0, casting_mode: str = "llama"
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), 1.0 - offset))
        self.eps, self.offset, self.casting_mode = eps, offset, casting_mode

    def forward(self, x: Any) -> Any:
        """Return the norm of rows."""
        settings = {"offset": self.offset, "casting_mode": self.casting_mode}
        return kernel("rms_norm")(x, self.weight, eps=self.eps, **settings)


class SwiGLU(nn.Module):  # type: ignore[misc]
    """A gated layer, ``down_proj(silu(gate_proj(x)) * up_proj(x))``, named as Llama's.

    Parameters
    ----------
    size, inner
        Lengths of rows, and of what is gated.
    """

    def __init__(self, size: int, inner: int, *, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(size, inner, bias=bias)
        self.up_proj = nn.Linear(size, inner, bias=bias)
        self.down_proj = nn.Linear(inner, size, bias=bias)

    def forward(self, x: Any) -> Any:
        """Return rows as long as those of `x`."""
        return self.down_proj(kernel("swiglu")(self.gate_proj(x), self.up_proj(x)))


class Rotary(nn.Module):  # type: ignore[misc]
    """`tile_nn.rotary` with tables for positions up to `length`.

    Parameters
    ----------
    size
        How many elements of a row are turned.
    theta
        Pair `i` turns by ``position · theta ** (-2i / size)``.
    interleaved, layout
        As for `tile_nn.rotary`.
    """

    def __init__(
        self, size: int, length: int, theta: float = 1e4, *, interleaved: bool = False,
        layout: str = "BHTD",
    ) -> None:  # fmt: skip
        super().__init__()
        rates = theta ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self.interleaved, self.layout = interleaved, layout

    def forward(self, q: Any, k: Any, start: int = 0) -> tuple[Any, Any]:
        """Return queries and keys of positions from `start`."""
        end = start + q.shape[-2 if self.layout == "BHTD" else -3]
        settings = {"interleaved": self.interleaved, "layout": self.layout}
        turned: tuple[Any, Any] = kernel("rotary")(
            q, self.cos[start:end], self.sin[start:end], k, **settings
        )
        return turned
