// Operations with a given rounding, by the host's rounding mode.
#include <cfenv>
#include <cmath>

#include "tile_sim/device_abi.h"

namespace {

constexpr int MODES[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};

// Values pass through volatile variables so that no compiler computes before or after the mode is
// set.
template <class T>
T compute(int operation, T a, T b, T c) {
  volatile T x = a, y = b, z = c, one = T(1);
  volatile T result;
  switch (operation) {
    case TSIM_ROUND_ADD:
      result = x + y;
      break;
    case TSIM_ROUND_SUB:
      result = x - y;
      break;
    case TSIM_ROUND_MUL:
      result = x * y;
      break;
    case TSIM_ROUND_FMA:
      result = std::fma(T(x), T(y), T(z));
      break;
    case TSIM_ROUND_RCP:
      result = one / x;
      break;
    case TSIM_ROUND_SQRT:
      result = std::sqrt(T(x));
      break;
    case TSIM_ROUND_DIV:
      result = x / y;
      break;
    default:
      result = x;
  }
  return result;
}

// The reciprocal of the root: only the last step is rounded as asked, from more bits for float.
double rounded_rsqrt(double a, int mode, bool is_double) {
  volatile double x = a;
  volatile double root = std::sqrt(x);
  if (is_double) {
    std::fesetround(mode);
    volatile double result = 1.0 / root;
    std::fesetround(FE_TONEAREST);
    return result;
  }
  volatile double exact = 1.0 / root;
  std::fesetround(mode);
  volatile float result = static_cast<float>(exact);
  std::fesetround(FE_TONEAREST);
  return result;
}

}  // namespace

extern "C" double tsim_rounded(int operation, double a, double b, double c, int mode,
                               int is_double) {
  if (operation == TSIM_ROUND_RSQRT) return rounded_rsqrt(a, MODES[mode], is_double != 0);
  std::fesetround(MODES[mode]);
  const double result = is_double ? compute<double>(operation, a, b, c)
                                  : compute<float>(operation, float(a), float(b), float(c));
  std::fesetround(FE_TONEAREST);
  return result;
}
