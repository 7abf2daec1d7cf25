// The device header's operations with a given rounding, beside this machine's own: how many
// results differ in any bit, and the first place where one does.
#include "tile_hip/rounded.h"

#include <cfenv>
#include <cmath>

namespace {

template <class F, class T>
T in_mode(int mode, F f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T result = f(T(x), T(y), T(z));
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T>
bool is_same(T a, T b) {
  using bits = tile::bits_of<T>;
  return (a != a && b != b) || tile::bits_as<bits>(a) == tile::bits_as<bits>(b);
}

template <class T, class Ours, class Theirs>
int differing(const T* a, const T* b, const T* c, int n, int mode, int* first, Ours ours,
              Theirs theirs) {
  int count = 0;
  for (int i = 0; i < n; ++i) {
    const T got = ours(a[i], b[i], c[i]), exact = in_mode(mode, theirs, a[i], b[i], c[i]);
    if (!is_same(got, exact) && count++ == 0) *first = i;
  }
  return count;
}

}  // namespace

#define RUN(NAME, MODE, FE, SUFFIX, T, CALL, EXACT)                                              \
  int NAME##_##MODE##_##SUFFIX(const T* a, const T* b, const T* c, int n, int* first) {          \
    return differing(a, b, c, n, FE, first,                                                      \
                     [](T x, T y, T z) { (void)y; (void)z; return tile::NAME##_##MODE CALL; },   \
                     [](T x, T y, T z) { (void)y; (void)z; return static_cast<T>(EXACT); });     \
  }
#define BOTH(NAME, MODE, FE, CALL, EXACT)             \
  RUN(NAME, MODE, FE, float32, float, CALL, EXACT)    \
  RUN(NAME, MODE, FE, float64, double, CALL, EXACT)
#define ALL(NAME, CALL, EXACT)                        \
  BOTH(NAME, rn, FE_TONEAREST, CALL, EXACT)           \
  BOTH(NAME, rz, FE_TOWARDZERO, CALL, EXACT)          \
  BOTH(NAME, ru, FE_UPWARD, CALL, EXACT)              \
  BOTH(NAME, rd, FE_DOWNWARD, CALL, EXACT)
// Of float32, by way of a wider root: right unless that falls on a border.
#define ROOT(MODE, FE) \
  RUN(ieee_frsqrt, MODE, FE, float32, float, (x), 1.0L / std::sqrt((long double)x))

extern "C" {
ALL(ieee_add, (x, y), x + y)
ALL(ieee_sub, (x, y), x - y)
ALL(ieee_mul, (x, y), x * y)
ALL(ieee_fdiv, (x, y), x / y)
ALL(ieee_fmaf, (x, y, z), std::fma(x, y, z))
ALL(ieee_frcp, (x), 1 / x)
ALL(ieee_fsqrt, (x), std::sqrt(x))
ROOT(rn, FE_TONEAREST)
ROOT(rz, FE_TOWARDZERO)
ROOT(ru, FE_UPWARD)
ROOT(rd, FE_DOWNWARD)
}
