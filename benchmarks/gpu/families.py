"""All computations that are measured, by name."""

from __future__ import annotations

from family_attention import BACKWARD, FORWARD, MLA
from family_mamba import SCAN, STATE
from family_products import FP8, GEMM, W4A16
from family_rows import COPY, LAYER_NORM, RMS_NORM, SOFTMAX

FAMILIES = {
    "gemm": GEMM,
    "attention": FORWARD,
    "backward": BACKWARD,
    "mla": MLA,
    "scan": SCAN,
    "state": STATE,
    "fp8": FP8,
    "w4a16": W4A16,
    "copy": COPY,
    "softmax": SOFTMAX,
    "rms_norm": RMS_NORM,
    "layer_norm": LAYER_NORM,
}
