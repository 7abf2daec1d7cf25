"""Kernels in Triton, by family: each yields a run for every shape of tiles."""

from __future__ import annotations

import triton_attention
import triton_mamba
import triton_products
import triton_rows

MAKERS = {
    "gemm": triton_products.gemm,
    "fp8": triton_products.fp8,
    "w4a16": triton_products.w4a16,
    "attention": triton_attention.attention,
    "mla": triton_attention.mla,
    "scan": triton_mamba.scan,
    "state": triton_mamba.state,
    "copy": triton_rows.copy,
    "softmax": triton_rows.softmax,
    "rms_norm": triton_rows.rms_norm,
    "layer_norm": triton_rows.layer_norm,
}
