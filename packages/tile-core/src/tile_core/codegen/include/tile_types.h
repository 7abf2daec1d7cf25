// Element types that mean the same on every machine. Device headers include this after they have
// defined TILE_INLINE, which decorates small functions.
#pragma once

namespace tile {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

// What the remaining codes of a narrow float mean, beside finite numbers.
enum class codes {
  ieee,    // infinities and NaNs, as in the wide formats
  fn,      // all ones is NaN, no infinity
  fnuz,    // the code of minus zero is NaN, no infinity
  finite,  // numbers only
};

// A float of 8 bits or fewer in a byte of its own: sign, EXPONENT bits, MANTISSA bits.
template <int EXPONENT, int MANTISSA, int BIAS, codes CODES>
struct narrow_float {
  u8 bits;
};

using e5m2 = narrow_float<5, 2, 15, codes::ieee>;
using e5m2_fnuz = narrow_float<5, 2, 16, codes::fnuz>;
using e4m3 = narrow_float<4, 3, 7, codes::fn>;  // float8_e4m3fn
using e4m3_fnuz = narrow_float<4, 3, 8, codes::fnuz>;
using e4m3_b11_fnuz = narrow_float<4, 3, 11, codes::fnuz>;
using e3m4 = narrow_float<3, 4, 3, codes::ieee>;
using e3m2 = narrow_float<3, 2, 3, codes::finite>;
using e2m3 = narrow_float<2, 3, 1, codes::finite>;
using e2m1 = narrow_float<2, 1, 1, codes::finite>;

// An integer of 4 bits in a byte of its own, whose upper half counts for nothing.
struct i4 {
  u8 bits;
  i4() = default;
  TILE_INLINE explicit i4(int x) : bits(static_cast<u8>(x & 15)) {}
  TILE_INLINE operator int() const { return static_cast<int>(static_cast<u32>(bits) << 28) >> 28; }
};
struct u4 {
  u8 bits;
  u4() = default;
  TILE_INLINE explicit u4(int x) : bits(static_cast<u8>(x & 15)) {}
  TILE_INLINE operator int() const { return bits & 15; }
};

// float8_e8m0fnu: a power of two, 0xff is NaN.
struct e8m0 {
  u8 bits;
};

}  // namespace tile
