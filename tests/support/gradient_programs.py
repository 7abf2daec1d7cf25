"""Functions whose gradients are known: the same in torch, with how many kernels they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from support import array_programs as programs


def attention(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def causal(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    hidden = torch.arange(n)[:, None] < torch.arange(m)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1) @ v


def grouped(q, k, v):
    times = q.shape[1] // k.shape[1]
    return causal(q, k.repeat_interleave(times, 1), v.repeat_interleave(times, 1))


def cross_entropy(x, matrix, target):
    return functional.cross_entropy(x @ matrix, target, reduction="none")


def layer_norm(x, weight, bias):
    return functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def rms_norm(x, weight):
    return functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def linear_gelu(x, matrix, bias):
    return functional.gelu(x @ matrix + bias, approximate="tanh")


def swiglu(x, gate, up):
    return functional.silu(x @ gate) * (x @ up)


def rotary(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def embedding(table, tokens, weight):
    return rms_norm(table[tokens], weight)


def layers(x, first, bias, second):
    """Multiply twice, with an activation that is read by three gradients."""
    return np.maximum(x @ first + bias, 0) @ second


def layers_of_torch(x, first, bias, second):
    return torch.relu(x @ first + bias) @ second


def heads(x, to_q, to_k, to_v, out):
    """Attend with heads that stand side by side."""
    rows, size = x.shape[:-1], x.shape[-1] // 2
    q, k, v = ((x @ w).reshape(*rows, 2, size).swapaxes(1, 2) for w in (to_q, to_k, to_v))
    o = programs.attention(q, k, v)
    return o.swapaxes(1, 2).reshape(x.shape) @ out


def heads_of_torch(x, to_q, to_k, to_v, out):
    q, k, v = ((x @ w).unflatten(-1, (2, -1)).swapaxes(1, 2) for w in (to_q, to_k, to_v))
    return attention(q, k, v).swapaxes(1, 2).flatten(2) @ out


@dataclass(frozen=True)
class Differentiated:
    """A function of arrays, the same function of tensors, and its kernels in both passes."""

    function: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    forward: int
    backward: int
    whole: tuple[int, ...] = ()
    """The shape of the argument of integers, if there is one."""
    scale: float = 1.0

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self) -> list[np.ndarray]:
        random = np.random.default_rng(0)
        draws = (self.scale * random.standard_normal(shape) for shape in self.shapes)
        made = [x.astype("float32") for x in draws]
        if self.whole:
            made.insert(1 if self.name == "embedding" else 2, random.integers(0, 37, self.whole))
        return made

    def expected(self, arrays, cotangent) -> list[np.ndarray]:
        """Return the gradients that torch computes in 64 bits."""
        tensors = [torch.tensor(x.astype("float64") if x.dtype.kind == "f" else x) for x in arrays]
        floats = [x.requires_grad_() for x in tensors if x.is_floating_point()]
        result = self.reference(*tensors)
        found = torch.autograd.grad(result, floats, torch.tensor(cotangent.astype("float64")))
        return [x.numpy() for x in found]


X = (37, 211)
CASES = [
    Differentiated(programs.softmax, lambda x: torch.softmax(x, -1), (X,), 1, 1),
    Differentiated(programs.log_softmax, lambda x: torch.log_softmax(x, -1), (X,), 1, 1),
    Differentiated(programs.logsumexp, lambda x: torch.logsumexp(x, -1), (X,), 1, 1),
    Differentiated(programs.layer_norm, layer_norm, (X, (211,), (211,)), 1, 2),
    Differentiated(programs.rms_norm, rms_norm, (X, (211,)), 1, 2),
    Differentiated(programs.linear_gelu, linear_gelu, (X, (211, 90), (90,)), 1, 3),
    Differentiated(programs.swiglu, swiglu, (X, (211, 90), (211, 90)), 1, 2),
    Differentiated(programs.attention, attention,
                   ((1, 2, 130, 64), (1, 2, 192, 64), (1, 2, 192, 48)), 1, 3),
    Differentiated(programs.causal, causal, ((1, 50, 64), (1, 75, 64), (1, 75, 16)), 1, 3),
    Differentiated(programs.grouped, grouped,
                   ((2, 4, 64, 16), (2, 2, 64, 16), (2, 2, 64, 16)), 1, 7),
    Differentiated(programs.cross_entropy, cross_entropy, ((37, 48), (48, 500)), 1, 2, (37,)),
    Differentiated(programs.two_layers, lambda x, a, b: torch.relu(x @ a) @ b,
                   ((37, 96), (96, 512), (512, 300)), 2, 5),
    Differentiated(layers, layers_of_torch, ((2, 24, 144), (144, 160), (160,), (160, 144)), 2, 5),
    Differentiated(heads, heads_of_torch, ((2, 24, 32), *[(32, 32)] * 4), 3, 12, scale=0.25),
    Differentiated(programs.rotary, rotary, ((2, 9, 16), (9, 8), (9, 8)), 1, 1),
    Differentiated(programs.embedding, embedding, ((37, 60), (60,)), 1, 3, (11,)),
]  # fmt: skip
