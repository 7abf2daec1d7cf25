// Eight 4-bit numbers from four bytes (low half first) to eight 16-bit floats, in order.
#pragma once
#include "tile_sim/arithmetic.h"

namespace tile {

// `decode` takes the four bits of a number to a float.
template <class T, class F>
TILE_HOST void dequant_eight(const regs<T>& result, u32 word, F decode, unsigned line) {
  T* values = (T*)tsim_write_registers(&result, 8 * sizeof(T), line);
  for (int i = 0; i < 8; ++i) values[i] = cast<T>(decode(word >> (4 * i) & 15));
}

template <class R, class P>
TILE_HOST void dequant_i4(R&& result, P&& packed, unsigned line = __builtin_LINE()) {
  dequant_eight(as_registers(result), word_of(as_registers(packed), line),
                [](u32 code) { return static_cast<float>(static_cast<int>(code << 28) >> 28); },
                line);
}
template <class R, class P>
TILE_HOST void dequant_u4(R&& result, P&& packed, unsigned line = __builtin_LINE()) {
  dequant_eight(as_registers(result), word_of(as_registers(packed), line),
                [](u32 code) { return static_cast<float>(code); }, line);
}
template <class R, class P>
TILE_HOST void dequant_e2m1(R&& result, P&& packed, unsigned line = __builtin_LINE()) {
  dequant_eight(as_registers(result), word_of(as_registers(packed), line),
                [](u32 code) { return decode(e2m1{static_cast<u8>(code)}); }, line);
}

}  // namespace tile
