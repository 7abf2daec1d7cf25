// Arithmetic of narrow floats, the same on every machine: included where `when`, `is_narrow`,
// `to_float` and `cast` are known.
#pragma once

namespace tile {

// Narrow floats compute in float32 and round once.
#define TILE_NARROW_OPERATOR(OP)                                                   \
  template <class T>                                                               \
  TILE_INLINE typename when<is_narrow<T>, T>::type operator OP(T a, T b) {         \
    return cast<T>(to_float(a) OP to_float(b));                                    \
  }
#define TILE_NARROW_COMPARISON(OP)                                                 \
  template <class T>                                                               \
  TILE_INLINE typename when<is_narrow<T>, bool>::type operator OP(T a, T b) {      \
    return to_float(a) OP to_float(b);                                             \
  }
TILE_NARROW_OPERATOR(+)
TILE_NARROW_OPERATOR(-)
TILE_NARROW_OPERATOR(*)
TILE_NARROW_OPERATOR(/)
TILE_NARROW_COMPARISON(==)
TILE_NARROW_COMPARISON(!=)
TILE_NARROW_COMPARISON(<)
TILE_NARROW_COMPARISON(<=)
TILE_NARROW_COMPARISON(>)
TILE_NARROW_COMPARISON(>=)
#undef TILE_NARROW_OPERATOR
#undef TILE_NARROW_COMPARISON

}  // namespace tile
