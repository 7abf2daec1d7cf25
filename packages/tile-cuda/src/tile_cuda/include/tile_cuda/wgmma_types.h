// What products of warpgroups multiply, and how many columns: the words in their instructions.
#pragma once
#include "tile_cuda/arithmetic.h"
#include "tile_cuda/wgmma_lists.h"

namespace tile {

// What the text of an instruction says of its types, and how it ends.
enum class wgmma_kind { wide, narrow, integer };  // wide: of 16 bits, along any dimension
template <class D, class A, class B>
struct wgmma_types {
  static_assert(never<D>, "tile::wgmma has no product of these element types");
};
#define TILE_WGMMA_TYPES(D, A, B, KIND, TEXT)                  \
  template <>                                                  \
  struct wgmma_types<D, A, B> {                                \
    static constexpr wgmma_kind kind = wgmma_kind::KIND;       \
    static constexpr char text[] = TEXT;                       \
  };
#define TILE_WGMMA_FLOAT8(A, B, TEXT)                          \
  TILE_WGMMA_TYPES(float, A, B, narrow, "k32.f32." TEXT)       \
  TILE_WGMMA_TYPES(half_t, A, B, narrow, "k32.f16." TEXT)
TILE_WGMMA_TYPES(float, half_t, half_t, wide, "k16.f32.f16.f16")
TILE_WGMMA_TYPES(half_t, half_t, half_t, wide, "k16.f16.f16.f16")
TILE_WGMMA_TYPES(float, bfloat16_t, bfloat16_t, wide, "k16.f32.bf16.bf16")
TILE_WGMMA_TYPES(float, float, float, narrow, "k8.f32.tf32.tf32")
TILE_WGMMA_FLOAT8(e4m3, e4m3, "e4m3.e4m3")
TILE_WGMMA_FLOAT8(e4m3, e5m2, "e4m3.e5m2")
TILE_WGMMA_FLOAT8(e5m2, e4m3, "e5m2.e4m3")
TILE_WGMMA_FLOAT8(e5m2, e5m2, "e5m2.e5m2")
TILE_WGMMA_TYPES(int, i8, i8, integer, "k32.s32.s8.s8")
TILE_WGMMA_TYPES(int, i8, u8, integer, "k32.s32.s8.u8")
TILE_WGMMA_TYPES(int, u8, i8, integer, "k32.s32.u8.s8")
TILE_WGMMA_TYPES(int, u8, u8, integer, "k32.s32.u8.u8")
#undef TILE_WGMMA_FLOAT8
#undef TILE_WGMMA_TYPES

// TA is -1 for A from registers, which has no order to choose.
template <wgmma_kind KIND, int TA, int TB>
struct wgmma_end {
  static_assert(TA <= 0 && TB == 0, "tile::wgmma: 8-bit and tf32 operands lie along K");
  static constexpr char text[] = ", 1, 1";
};
template <int TA, int TB>
struct wgmma_end<wgmma_kind::integer, TA, TB> {
  static_assert(TA <= 0 && TB == 0, "tile::wgmma: 8-bit operands lie along K");
  static constexpr char text[] = "";
};
template <int TA, int TB>
struct wgmma_end<wgmma_kind::wide, TA, TB> {
  static constexpr char text[] = {',', ' ', '1', ',', ' ', '1', ',', ' ', '0' + TA,
                                  ',', ' ', '0' + TB, '\0'};
};
template <int TB>
struct wgmma_end<wgmma_kind::wide, -1, TB> {
  static constexpr char text[] = {',', ' ', '1', ',', ' ', '1', ',', ' ', '0' + TB, '\0'};
};

template <int N, int DIGITS = (N < 10 ? 1 : N < 100 ? 2 : 3)>
struct decimal {
  static constexpr char text[] = {'0' + N / 100, '0' + N / 10 % 10, '0' + N % 10, '\0'};
};
template <int N>
struct decimal<N, 2> {
  static constexpr char text[] = {'0' + N / 10, '0' + N % 10, '\0'};
};
template <int N>
struct decimal<N, 1> {
  static constexpr char text[] = {'0' + N, '\0'};
};

// The text of one product, checked.
template <int N, int TA, int TB, class D, class A, class B>
struct wgmma_product {
  using types = wgmma_types<D, A, B>;
  using end = wgmma_end<types::kind, TA, TB>;
  using columns = decimal<N>;
  static_assert(N % 8 == 0 && 8 <= N && N <= 256, "tile::wgmma: N is a multiple of 8 up to 256");
  static_assert(types::kind != wgmma_kind::integer || N == 8 || N == 24 || N % 16 == 0,
                "tile::wgmma: N of 8-bit integers is 8, 24 or a multiple of 16");
  static_assert(sizeof(end) > 0, "");  // which looks at the dimensions
  static constexpr int n = N, ta = TA, tb = TB;
  // Sums of 16 bits are two to a register.
  static constexpr int registers = sizeof(D) == 2 ? N / 4 : N / 2;
  using word = typename when_else<same<D, float>, float, u32>::type;
};

}  // namespace tile
