// The mathematics of the device header on this machine, beside the C library in a wider type: for
// each function of each type, the error of every result in units in the last place.
#include "tile_hip/math.h"
#include "tile_hip/rounded.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace {

// The bits of a float mixed: which way a unit is off is anybody's guess.
int mischief(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits ^ bits >> 15) * 0x2c1b3c6du;
  bits = (bits ^ bits >> 12) * 0x297a2d39u;
  return static_cast<int>((bits ^ bits >> 15) % 3) - 1;
}
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// What a unit may give: one step off wherever the result is not exact, no subnormal numbers.
template <class F>
float as_units_may(F exact, float x) {
  x = flushed(x);
  const double y = exact(static_cast<double>(x));
  const float near = static_cast<float>(y);
  if (near != near || static_cast<double>(near) == y || std::isinf(near)) return flushed(near);
  const int step = mischief(x);
  const float inf = std::numeric_limits<float>::infinity();
  return flushed(step == 0 ? near : std::nextafter(near, step > 0 ? inf : -inf));
}

}  // namespace

namespace tile {
namespace unit {

constexpr double turn = 6.283185307179586;
float exp2(float x) { return as_units_may([](double v) { return std::exp2(v); }, x); }
float log2(float x) { return as_units_may([](double v) { return std::log2(v); }, x); }
float reciprocal(float x) { return as_units_may([](double v) { return 1.0 / v; }, x); }
float rsqrt(float x) { return as_units_may([](double v) { return 1.0 / std::sqrt(v); }, x); }
float sine(float x) { return static_cast<float>(std::sin(x * turn)); }
float cosine(float x) { return static_cast<float>(std::cos(x * turn)); }
float middle(float a, float b, float c) {
  return std::fmax(std::fmin(a, std::fmax(b, c)), std::fmin(b, c));
}

}  // namespace unit
}  // namespace tile

namespace {

template <class T, class W>
double error_in_ulps(T got, W exact) {
  using limits = std::numeric_limits<T>;
  if (exact != exact || got != got) return exact != exact && got != got ? 0.0 : INFINITY;
  const bool is_nearest = got == static_cast<T>(exact);
  if (is_nearest && std::signbit(got) != std::signbit(exact)) return INFINITY;
  if (is_nearest && std::isinf(got)) return 0.0;
  if (std::isinf(got) || std::isinf(exact)) {  // right next to where it overflows
    const W almost = static_cast<W>(limits::max()) * (1 - 2 * W(limits::epsilon()));
    const bool is_close = std::fabs(exact) > almost;
    return is_close && std::fabs(got) >= limits::max() ? 1.0 : INFINITY;
  }
  const int exponent = exact == 0 ? limits::min_exponent - 1
                                  : std::max(std::ilogb(exact), limits::min_exponent - 1);
  return static_cast<double>(std::fabs(static_cast<W>(got) - exact) /
                             std::ldexp(W(1), exponent - limits::digits + 1));
}

template <class W>
W sigmoid_of(W x) {
  const W small = std::exp(-std::fabs(x));
  return (x < 0 ? small : W(1)) / (W(1) + small);
}

}  // namespace

#define ONE_OF(NAME, SUFFIX, T, W, EXACT)                                            \
  void NAME##SUFFIX(const T* a, const T*, T* y, double* ulps, int n) {               \
    for (int i = 0; i < n; ++i) {                                                    \
      const W x = a[i];                                                              \
      y[i] = tile::NAME(a[i]);                                                       \
      ulps[i] = error_in_ulps<T, W>(y[i], EXACT);                                    \
    }                                                                                \
  }
#define TWO_OF(NAME, SUFFIX, T, W, EXACT)                                            \
  void NAME##SUFFIX(const T* a, const T* b, T* y, double* ulps, int n) {             \
    for (int i = 0; i < n; ++i) {                                                    \
      const W x = a[i], z = b[i];                                                    \
      y[i] = tile::NAME(a[i], b[i]);                                                 \
      ulps[i] = error_in_ulps<T, W>(y[i], EXACT);                                    \
    }                                                                                \
  }
#define ONE(NAME, EXACT)                               \
  ONE_OF(NAME, _float32, float, double, EXACT)         \
  ONE_OF(NAME, _float64, double, long double, EXACT)
#define TWO(NAME, EXACT)                               \
  TWO_OF(NAME, _float32, float, double, EXACT)         \
  TWO_OF(NAME, _float64, double, long double, EXACT)

extern "C" {
ONE(exp, std::exp(x))
ONE(exp2, std::exp2(x))
ONE(exp10, exp10l(x))
ONE(expm1, std::expm1(x))
ONE(log, std::log(x))
ONE(log2, std::log2(x))
ONE(log10, std::log10(x))
ONE(log1p, std::log1p(x))
ONE(sqrt, std::sqrt(x))
ONE(rsqrt, 1 / std::sqrt(x))
ONE(sigmoid, sigmoid_of(x))
ONE(tanh, std::tanh(x))
ONE(sin, std::sin(x))
ONE(cos, std::cos(x))
ONE(tan, std::tan(x))
ONE(asin, std::asin(x))
ONE(acos, std::acos(x))
ONE(atan, std::atan(x))
ONE(sinh, std::sinh(x))
ONE(cosh, std::cosh(x))
ONE(asinh, std::asinh(x))
ONE(acosh, std::acosh(x))
ONE(atanh, std::atanh(x))
ONE(erf, std::erf(x))
ONE(round, std::rint(x))
ONE(fast_exp, std::exp(x))
ONE(fast_exp10, exp10l(x))
ONE(fast_log, std::log(x))
ONE(fast_log2, std::log2(x))
ONE(fast_log10, std::log10(x))
ONE(fast_sin, std::sin(x))
ONE(fast_cos, std::cos(x))
ONE(fast_tan, std::tan(x))
ONE(fast_rcp, 1 / x)
TWO(pow, std::pow(x, z))
TWO(fmod, std::fmod(x, z))
TWO(hypot, std::hypot(x, z))
TWO(atan2, std::atan2(x, z))
TWO(copysign, std::copysign(x, z))
TWO_OF(quotient, _float32, float, float, float(x) / float(z))
TWO_OF(nextafter, _float32, float, double, std::nextafterf(float(x), float(z)))
TWO_OF(nextafter, _float64, double, long double, std::nextafter(double(x), double(z)))
}
