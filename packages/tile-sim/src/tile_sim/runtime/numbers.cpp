#include "numbers.h"

#include <algorithm>
#include <cmath>

#include "tile_sim/device_abi.h"

namespace tsim {

float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {
    return bits_of<float>(sign | 0x7f800000 | uint32_t(magnitude & 0x3ff) << 13);
  }
  if (magnitude < 0x400) {
    const float value = float(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return bits_of<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of<uint32_t>(x);
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds beyond 65504
  if (magnitude < 0x38800000) {  // below 2^-14: count in units of 2^-24
    return uint16_t(sign | uint16_t(std::nearbyint(std::fabs(double(x)) * 0x1p24)));
  }
  const uint32_t even = magnitude >> 13 & 1;
  return uint16_t(sign | (((magnitude + 0xfff + even) >> 13) - (112u << 10)));
}

uint16_t float_to_bfloat16(float x) {
  const uint32_t bits = bits_of<uint32_t>(x);
  if (x != x) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

namespace {

enum Codes { IEEE, FN, FNUZ, FINITE, POWERS = -1 };

struct NarrowFormat {
  uint32_t sign;        // bit
  uint32_t infinity;    // code, where the format has one
  uint32_t largest;     // finite code
  uint32_t nan;
};

NarrowFormat facts(int exponent, int mantissa, int codes) {
  NarrowFormat f;
  f.sign = 1u << (exponent + mantissa);
  const uint32_t magnitude = f.sign - 1;
  f.infinity = ((1u << exponent) - 1) << mantissa;
  f.largest = codes == IEEE ? f.infinity - 1 : codes == FN ? magnitude - 1 : magnitude;
  f.nan = codes == IEEE   ? f.infinity | 1u << (mantissa - 1)
          : codes == FN   ? magnitude
          : codes == FNUZ ? f.sign
                          : f.largest;
  return f;
}

double power_to_float(uint32_t code) {
  return code == 255 ? std::nan("") : std::ldexp(1.0, int(code) - 127);
}

// To the nearest power of two; numbers that have none give NaN.
uint32_t float_to_power(double x, bool saturate) {
  if (!(x >= 0)) return 255;
  if (std::isinf(x)) return saturate ? 254 : 255;
  if (x < 0x1p-127) return 0;
  int exponent;
  const double fraction = std::frexp(x, &exponent);   // x = fraction * 2^exponent, in [0.5, 1)
  int code = exponent - 1 + 127;
  if (fraction > 0.75 || (fraction == 0.75 && code & 1)) ++code;
  return code > 254 ? (saturate ? 254 : 255) : uint32_t(code);
}

}  // namespace

double narrow_to_float(uint32_t code, int exponent, int mantissa, int bias, int codes) {
  if (codes == POWERS) return power_to_float(code);
  const NarrowFormat f = facts(exponent, mantissa, codes);
  const uint32_t magnitude = code & (f.sign - 1);
  double value;
  if (codes == FNUZ && code == f.sign) return std::nan("");
  if (codes == FN && magnitude == f.nan) {
    value = std::nan("");
  } else if (codes == IEEE && magnitude >= f.infinity) {
    value = magnitude == f.infinity ? HUGE_VAL : std::nan("");
  } else if (magnitude >> mantissa) {
    const uint32_t fraction = (magnitude & ((1u << mantissa) - 1)) | 1u << mantissa;
    value = std::ldexp(double(fraction), int(magnitude >> mantissa) - bias - mantissa);
  } else {
    value = std::ldexp(double(magnitude), 1 - bias - mantissa);
  }
  return code & f.sign ? -value : value;
}

uint32_t float_to_narrow(double x, int exponent, int mantissa, int bias, int codes, bool saturate) {
  if (codes == POWERS) return float_to_power(x, saturate);
  const NarrowFormat f = facts(exponent, mantissa, codes);
  const uint32_t sign = std::signbit(x) ? f.sign : 0;
  if (x != x) return codes == FNUZ || codes == FINITE ? f.nan : f.nan | sign;
  const double magnitude = std::fabs(x);
  uint32_t code;
  if (std::isinf(magnitude)) {
    code = f.largest + 1;
  } else {
    // Codes count in units of the last place; the exponent says how large a unit is.
    int power;
    std::frexp(magnitude, &power);
    const int unit = std::max(power - 1, 1 - bias) - mantissa;
    const double scaled = std::nearbyint(std::ldexp(magnitude, -unit));
    const int64_t steps = int64_t(unit + mantissa + bias - 1) << mantissa;
    code = magnitude == 0 ? 0 : uint32_t(std::min<int64_t>(steps + int64_t(scaled), f.largest + 1));
  }
  if (code > f.largest) {
    if (saturate || codes == FINITE) code = f.largest;
    else if (codes == IEEE) code = f.infinity;
    else code = f.nan;
  }
  if (codes == FNUZ && (code == 0 || code == f.nan)) return code;
  return code | sign;
}

}  // namespace tsim

extern "C" {

float tsim_half_to_float(unsigned short bits) { return tsim::half_to_float(bits); }
unsigned short tsim_float_to_half(float x) { return tsim::float_to_half(x); }

double tsim_narrow_to_float(unsigned code, int exponent, int mantissa, int bias, int codes) {
  return tsim::narrow_to_float(code, exponent, mantissa, bias, codes);
}

unsigned tsim_float_to_narrow(double x, int exponent, int mantissa, int bias, int codes,
                              int saturate) {
  return tsim::float_to_narrow(x, exponent, mantissa, bias, codes, saturate != 0);
}

}  // extern "C"
