"""Functions in plain C, brought along by a kernel, under the compiler of CUDA."""

from __future__ import annotations

import pytest

from support.cuda_header import printed
from support.toolchain import nvrtc_for
from tile_cuda.machine_code import compile_source

C_TEXT = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <float.h>
#include <limits.h>
#include <stddef.h>
static int calls = 0;
static const float weights[3] = {1, 2, 3};
float scaled(float x, int k) { calls += 1; return x * k * weights[k % 3]; }
double wide(double x, int64_t k) { return x + k + hypot(x, M_PI) + DBL_MAX; }
int32_t halved(int8_t x) { return x / 2 + INT_MAX; }
_Bool odd(uint32_t x) { return x & 1; }
size_t size(const void *p) { return p == NULL ? 0 : sizeof(float); }
void add_all(const float *restrict a, float *restrict out, int n) {
  for (int i = 0; i < n; i++) out[0] += a[i];
  if (isinf(out[0])) printf("%g\\n", out[0]);
}
int64_t first(int64_t *a) { return a[0]; }
long long second(const long long *a) { return a[1]; }
void clear(void *p, int n) { memset(p, 0, n); }
"""
BODY = """\
  F[tid] = scaled(F[tid], 3) + float(halved(tile::i8(3))) + (odd(7u) ? 1.0f : 0.0f);
  tile::sptr<float> S = tile::smem<float>(0, 128);
  add_all(tile::raw(F + (tid)), tile::raw(S), 2);
  tile::frag<float, 4> R;
  add_all(tile::raw(S + (tid)), tile::raw(R + 2), 2);
  D[tid] = wide(D[tid], tile::i64(tid));
  L[tid] = first(tile::raw(L)) + second(tile::raw(L + (1))) + second(tile::any_pointer(UL[0]));
  clear(tile::raw(I), 4);
  UL[tid] = size(tile::raw(I));
"""


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_89"])
def test_plain_c_runs_on_the_gpu(arch):
    nvrtc_for(arch)
    assert "k" in compile_source(printed(BODY, C_TEXT), arch, warn=False).resources


def test_functions_that_say_where_they_run_still_do():
    nvrtc_for("sm_80")
    text = "template <class V> __device__ __forceinline__ V twice(const V *x) { return *x + *x; }\n"
    body = "  F[tid] = twice(tile::raw(F + (tid)));"
    found = compile_source(printed(body, text), "sm_80", warn=False)
    assert "add.f32" in found.assembly or "add.rn.f32" in found.assembly
