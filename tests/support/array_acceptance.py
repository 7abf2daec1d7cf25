"""The programs that functions of whole arrays are accepted by, with the number of their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from support.array_programs import PROGRAMS, Program, Q, attention, scores
from tile_api.arrays.planning.plan import Blocks


def unnormalised(q, k, v):
    e = np.exp(scores(q, k))
    return e / e.sum(axis=-1, keepdims=True) @ v


def queries(q, k, v, given, log_sum, delta):
    p = np.exp(scores(q, k) - log_sum[..., None])
    return p * (given @ np.swapaxes(v, -1, -2) - delta[..., None]) @ k


def decode(q, k, v):
    return attention(q, k, v)


def paged(q, keys, values, tokens):
    """Attention to keys and values in pages: `tokens` has the pages of a sequence."""
    k, v = (x[tokens].reshape(-1, x.shape[-1]) for x in (keys, values))
    return attention(q, k, v)


BACKWARD = {"given": (1, 2, 130, 48), "log_sum": (1, 2, 130), "delta": (1, 2, 130)}
MORE = [
    Program(unnormalised, Q), Program(queries, {**Q, **BACKWARD}),
    Program(decode, {"q": (2, 1, 32), "k": (2, 500, 32), "v": (2, 500, 24)}, kernels=2),
    Program(paged, {"q": (4, 32), "keys": (37, 16, 32), "values": (37, 16, 24), "tokens": (9,)},
            kernels=2),
]  # fmt: skip
SPLIT = Blocks(parts=4)
"""Where few blocks go through a long stream, several share it."""


@dataclass(frozen=True)
class Row:
    """A number of the list; `most` kernels are accepted of each program."""

    title: str
    names: tuple[str, ...]
    most: int = 1
    blocks: Blocks | None = None

    def programs(self) -> Iterator[Program]:
        """Yield its programs."""
        for name in self.names:
            found = [p for p in (*PROGRAMS, *MORE) if p.name == name]
            assert found, name
            yield from found


ACCEPTANCE = {
    1: Row("bias + ReLU + residual", ("bias_relu",)),
    2: Row("softmax", ("softmax",)),
    3: Row("log-softmax", ("log_softmax",)),
    4: Row("logsumexp", ("logsumexp",)),
    5: Row("argmax, argmin", ("positions",)),
    6: Row("top-k of rows", ("best",)),
    7: Row("mean and variance", ("moments",)),
    8: Row("layer norm", ("layer_norm",)),
    9: Row("RMS norm, group norm", ("rms_norm", "norm_of_planes")),
    10: Row("RMS norm + product", ("rms_linear",)),
    11: Row("linear + bias + GELU", ("linear_gelu",)),
    12: Row("SwiGLU; two layers", ("swiglu", "two_layers"), 2),
    13: Row("low-rank update", ("low_rank",), 2),
    14: Row("4-bit weights", ("four_bits", "two_in_a_byte")),
    15: Row("block-scaled product", ("block_scaled",)),
    16: Row("rows quantised to bytes", ("quantised_rows",)),
    17: Row("attention", ("attention",)),
    18: Row("causal attention", ("causal",)),
    19: Row("window + slope", ("windowed",)),
    20: Row("grouped queries", ("grouped",)),
    21: Row("cap; sink; log-sum as well", ("capped", "with_sink", "with_log_sum")),
    22: Row("unnormalised attention", ("unnormalised",)),
    23: Row("attention with a gate and a norm", ("gated",)),
    24: Row("decoding, shared by blocks", ("decode",), 2, SPLIT),
    25: Row("paged decoding", ("paged",), 2, SPLIT),
    26: Row("packed documents", ("documents",)),
    27: Row("attention, backward", ("queries", "keys_and_values")),
    28: Row("softmax over queries", ("over_queries",), 2),
    29: Row("compressed keys", ("latent_attention",)),
    30: Row("differential attention", ("differential",)),
    31: Row("linear attention", ("linear_attention",), 2),
    32: Row("Mamba-2", ("mamba_2",), 3),
    33: Row("gated retention", ("gated_retention",), 3),
    34: Row("2-D convolution + bias + ReLU", ("convolution",)),
    35: Row("causal filter + SiLU", ("causal_filter",)),
    36: Row("pooling, largest and mean", ("pools",), 2),
    37: Row("rotary on queries and keys", ("rotary_pair",)),
    38: Row("norm of queries and keys + attention", ("normal_queries_and_keys",)),
    39: Row("router of experts", ("router",)),
    40: Row("experts on sorted tokens", ("experts",), 2),
    41: Row("embedding + norm", ("embedding",)),
    42: Row("linear + cross entropy", ("cross_entropy",)),
    43: Row("a step of Adam", ("adam",)),
    44: Row("position and spread under softmax", ("where_it_looks",)),
}
