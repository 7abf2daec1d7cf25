"""Kernels that models are made of, each a function of arrays of the tile language.

>>> import numpy as np
>>> import tile_nn
>>> tile_nn.silu_and_mul(np.zeros((1, 4), "float32"))
array([[0., 0.]], dtype=float32)
"""

from tile_core import verify_companion
from tile_nn.kernels.rms_norm import rms_norm
from tile_nn.kernels.silu_and_mul import silu_and_mul
from tile_nn.kernels.swiglu import swiglu

__author__ = "The tile authors"
__version__ = "0.1.0"
__all__ = ["rms_norm", "silu_and_mul", "swiglu"]

verify_companion("tile_api", __version__)
