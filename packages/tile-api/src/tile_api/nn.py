"""Functions that models are made of, defined by programs of NumPy: `tile_api.arrays.definitions`.

Each is a `tile.Function`: kernels for arrays, and part of any other function that calls it.

>>> import numpy as np
>>> import tile_api as tile
>>> tile.nn.softmax(np.zeros((1, 4), "float32"))
array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_api.arrays.definitions import attention as attention
from tile_api.arrays.definitions import attention_varlen as attention_varlen
from tile_api.arrays.definitions import conv1d as conv1d
from tile_api.arrays.definitions import conv2d as conv2d
from tile_api.arrays.definitions import cross_entropy as cross_entropy
from tile_api.arrays.definitions import dequantize as dequantize
from tile_api.arrays.definitions import erf as erf
from tile_api.arrays.definitions import filter_logits as filter_logits
from tile_api.arrays.definitions import gelu as gelu
from tile_api.arrays.definitions import group_norm as group_norm
from tile_api.arrays.definitions import layer_norm as layer_norm
from tile_api.arrays.definitions import log_softmax as log_softmax
from tile_api.arrays.definitions import logsumexp as logsumexp
from tile_api.arrays.definitions import rms_norm as rms_norm
from tile_api.arrays.definitions import rotary as rotary
from tile_api.arrays.definitions import sample as sample
from tile_api.arrays.definitions import silu as silu
from tile_api.arrays.definitions import softmax as softmax
from tile_api.frontend.source import calling_span
from tile_core.errors import UnknownName
from tile_core.spelling import nearest

if TYPE_CHECKING:
    from typing_extensions import Never


def __getattr__(name: str) -> Never:
    near = nearest(name, globals())
    raise UnknownName(
        f"tile.nn has no {name!r}",
        span=None if name.startswith("__") else calling_span(),
        hint=f"there is tile.nn.{near}" if near else "write it with functions of NumPy",
    )
