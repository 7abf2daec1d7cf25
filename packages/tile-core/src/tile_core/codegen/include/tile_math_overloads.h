// TILE_MATH1 and TILE_MATH2 define a function of one or two numbers for all floats, from those of
// float32 and float64: included where `to_float` and `cast` are known.

#define TILE_MATH1(NAME, F32, F64)                                              \
  TILE_INLINE float NAME(float x) { return F32(x); }                            \
  TILE_INLINE double NAME(double x) { return F64(x); }                          \
  template <class T>                                                            \
  TILE_INLINE T NAME(T x) {                                                     \
    return cast<T>(NAME(to_float(x)));                                          \
  }
#define TILE_MATH2(NAME, F32, F64)                                              \
  TILE_INLINE float NAME(float x, float y) { return F32(x, y); }                \
  TILE_INLINE double NAME(double x, double y) { return F64(x, y); }             \
  template <class T>                                                            \
  TILE_INLINE T NAME(T x, T y) {                                                \
    return cast<T>(NAME(to_float(x), to_float(y)));                             \
  }
