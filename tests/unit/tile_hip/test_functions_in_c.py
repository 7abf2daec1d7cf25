"""Functions in plain C, brought along by a kernel, under the compilers of HIP."""

from __future__ import annotations

import numpy as np
import pytest

from support.hip_header import POINTERS, printed
from support.toolchain import amd_compiler_for
from tile_core.codegen import PrintedSource
from tile_core.errors import Span, ToolchainError
from tile_hip.machine_code import Compiled, compile_source
from tile_sim.gfx9 import run

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
static const float weights[3] = {1, 2, 3};
float scaled(float x, int k) { return x * k * weights[k % 3]; }
double wide(double x, int64_t k) { return x + k + hypot(x, M_PI) + FLT_MAX; }
int32_t halved(int8_t x) { return x / 2 + INT_MAX - 7; }
_Bool odd(uint32_t x) { return x & 1; }
size_t size(const void *p) { return p == NULL ? 0 : sizeof(float); }
void add_all(const float *restrict a, float *restrict out, int n) {
  for (int i = 0; i < n; i++) out[0] += fmaxf(a[i], -FLT_MAX);
  if (isinf(out[0])) out[0] = fabsf(out[0]);
}
int64_t first(int64_t *a) { return a[0]; }
long long second(const long long *a) { return a[1]; }
void clear(void *p, int n) { memset(p, 0, n); }
"""
BODY = """\
  F[tid] = scaled(F[tid], 4) + float(halved(tile::i8(3))) + (odd(7u) ? 1.0f : 0.0f);
  tile::sptr<float> S = tile::smem<float>(0, 128);
  S[tid] = 1.0f;
  add_all(tile::raw(F + (tid)), tile::raw(S + (tid)), 1);
  D[tid] = wide(D[tid], tile::i64(tid)) + round(2.5) + double(roundf(-0.49999997f));
  L[tid + 2] = first(tile::raw(L)) + second(tile::raw(L + (0)));
  if (tid == 0) clear(tile::raw(I), 4);
  UL[tid] = size(tile::raw(I));
  F[tid] = S[tid];
"""


def with_c(text: str, body: str) -> PrintedSource:
    """Return a kernel, and C text before it whose lines are known as such."""
    source = printed(body, before=text)
    count = text.count("\n") + 1
    spans = {2 + n: Span("<source 1>", 1 + n, 0, 1) for n in range(count)}
    return PrintedSource(source.text, spans, source.entry_points)


def compiled(text: str, body: str, arch: str) -> Compiled:
    amd_compiler_for(arch)
    return compile_source(with_c(text, body), arch, warn=False)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_plain_c_runs_on_the_gpu(arch):
    f, d = np.ones(128, np.float32), np.ones(128)
    i, l = np.full(2, 9, np.int32), np.arange(3, 133, dtype=np.int64)
    u = np.zeros(128, np.uint64)
    arrays = {"F": f, "D": d, "I": i, "L": l, "UL": u}
    arguments = [arrays.get(name) for name in POINTERS.values()]
    assembly = compiled(C_TEXT, BODY, arch).assembly
    run(assembly, "k0", grid=1, block=128, arguments=[*arguments, 0], shared_bytes=512)
    assert (f == np.float32(1 + (8 + (2**31 - 7) + 1))).all()
    expected = 1 + np.arange(128) + np.hypot(1, np.pi) + float(np.finfo(np.float32).max) + 3
    np.testing.assert_allclose(d, expected)
    assert (l[2:] == 3 + 4).all()
    assert list(i) == [0, 9]
    assert (u == 4).all()


def test_variables_of_the_text_are_the_gpus():
    text = "static int calls = 0;\nint counted(void) { static int mine; return ++calls + ++mine; }"
    assert "calls" in compiled(text, "  I[tid] = counted();", "gfx942").assembly


def test_functions_that_say_where_they_run_still_do():
    text = "template <class V> __device__ __forceinline__ V twice(const V *x) { return *x + *x; }"
    assembly = compiled(text, "  F[tid] = twice(tile::raw(F + (tid)));", "gfx90a").assembly
    assert "v_add_f32" in assembly


def test_what_is_wrong_in_c_is_told_at_its_line():
    with pytest.raises(ToolchainError, match=r"import_source:2: error: .*'wrong'"):
        compiled("int fine(int x) { return x; }\nint bad() { return wrong; }", "", "gfx90a")
    with pytest.raises(ToolchainError, match="printf needs hiprtc or hipcc"):
        compiled('#include <stdio.h>\nvoid say() { printf("%d", 3); }', "  say();", "gfx90a")
