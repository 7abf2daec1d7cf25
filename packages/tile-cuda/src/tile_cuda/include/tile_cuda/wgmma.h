// Products of a warpgroup: C[64 x N] += A[64 x K] @ B[K x N], under way while threads go on.
//
// Four warps whose first is a multiple of four call these together. Warp w holds rows 16w to
// 16w + 15 of C; element d[4j + 2h + e] of lane t is in row t / 4 + 8h of them and in column
// 8j + t % 4 * 2 + e. K has 32 bytes. B, and A or not, are in shared memory.
#pragma once
#include "tile_cuda/arithmetic.h"
#include "tile_cuda/wgmma_lists.h"

namespace tile {

// An operand in shared memory: where it begins, and how far its parts are from each other.
template <class T>
struct wgmma_matrix {
  u64 descriptor;
};

// Chunks of 16 bytes change places in rows of SWIZZLE bytes (0, 32, 64, 128). Rows of the
// other dimension come in groups of eight. LEADING and STRIDE are bytes: STRIDE to the next
// group; LEADING to the next SWIZZLE bytes of a row, where its elements are along M or N (along K
// it is not read). Without swizzle a group is 8 rows of 16 bytes: along K, LEADING leads to the
// next 16 bytes and STRIDE to the next group, and the other way round along M or N. The operand
// begins 16 * `units` bytes behind `shared`.
// Source: PTX ISA, "Matrix descriptor format" and "Strides" of wgmma.
template <int SWIZZLE, int LEADING, int STRIDE, class T>
TILE_DEVICE wgmma_matrix<T> wgmma_operand(const T* shared, int units) {
  static_assert(SWIZZLE == 0 || SWIZZLE == 32 || SWIZZLE == 64 || SWIZZLE == 128,
                "tile::wgmma_operand: rows that are swizzled have 0, 32, 64 or 128 bytes");
  static_assert(LEADING % 16 == 0 && STRIDE % 16 == 0 && LEADING < 262144 && STRIDE < 262144,
                "tile::wgmma_operand: offsets are multiples of 16 bytes below 262144");
  constexpr u32 mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
  constexpr u64 high = static_cast<u64>(mode << 30 | STRIDE / 16) << 32;
  // Sums of 32 bits without a carry: what does not vary is added outside of loops.
  const u32 low = shared_address(shared) / 16 + (LEADING / 16 << 16) + units;
  return {high | low};
}

// Registers and shared memory that were written may be read by the products that follow.
TILE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Close the warpgroup's group of products.
TILE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most PENDING groups are under way.
template <int PENDING>
TILE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Accumulators are where they are: the compiler neither moves nor copies them across this. Many
// to a statement: each costs the compiler time.
#define TILE_WGMMA_PIN(W, C)                                                \
  template <int N>                                                          \
  TILE_DEVICE void wgmma_pin(W* all) {                                      \
    constexpr int pinned = N / 16 * 16;                                     \
    TILE_UNROLL                                                             \
    for (int i = 0; i < pinned; i += 16) {                                  \
      W* const d = all + i;                                                 \
      asm volatile("" : TILE_LIST16(C));                                    \
    }                                                                       \
    TILE_UNROLL                                                             \
    for (int i = pinned; i < N; ++i) asm volatile("" : C(all[i]));          \
    asm volatile("" ::: "memory");                                          \
  }
#define TILE_ADD_F(x) "+f"(x)
#define TILE_SET_F(x) "=f"(x)
#define TILE_ADD_R(x) "+r"(x)
#define TILE_SET_R(x) "=r"(x)
TILE_WGMMA_PIN(float, TILE_ADD_F)
TILE_WGMMA_PIN(u32, TILE_ADD_R)
#undef TILE_WGMMA_PIN
template <int N, class T>
TILE_DEVICE void wgmma_pin(T* d) {  // N elements of any type, in whole registers
  wgmma_pin<N * sizeof(T) / 4>(reinterpret_cast<u32*>(d));
}

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
  // Sums of 16 bits are two to a register.
  static constexpr int registers = sizeof(D) == 2 ? N / 4 : N / 2;
  using word = typename when_else<same<D, float>, float, u32>::type;
};

// The instructions with R accumulator registers of type W. A set of sums is undefined before.
template <int R, class W>
struct wgmma_call;
#define TILE_WGMMA_ASM(TRUTH, R, A, B, COLUMNS, TYPES, END, LIST, ...)                        \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TRUTH ", 0;\n\t"                       \
               "wgmma.mma_async.sync.aligned.m64n%" #COLUMNS "%" #TYPES                       \
               " {" TILE_REGISTERS_##R "}, " A ", %" #B ", p%" #END ";\n\t}"                  \
               : LIST                                                                         \
               : __VA_ARGS__, "l"(b), "C"(P::columns::text), "C"(P::types::text),             \
                 "C"(P::end::text))
#define TILE_WGMMA_BOTH(R, W, ADD, SET, I0, I1, I2, I3, I4, I5, I6, I7)                       \
  template <>                                                                                 \
  struct wgmma_call<R, W> {                                                                   \
    template <class P>                                                                        \
    TILE_DEVICE static void ss(W* d, u64 a, u64 b) {                                          \
      TILE_WGMMA_ASM("1", R, "%" #I0, I1, I2, I3, I4, TILE_LIST##R(ADD), "l"(a));             \
    }                                                                                         \
    template <class P>                                                                        \
    TILE_DEVICE static void ss_set(W* d, u64 a, u64 b) {                                      \
      TILE_WGMMA_ASM("0", R, "%" #I0, I1, I2, I3, I4, TILE_LIST##R(SET), "l"(a));             \
    }                                                                                         \
    template <class P, class A>                                                               \
    TILE_DEVICE static void rs(W* d, const A* a, u64 b) {                                     \
      TILE_WGMMA_ASM("1", R, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, I6, I7,      \
                     TILE_LIST##R(ADD), TILE_WGMMA_A);                                        \
    }                                                                                         \
    template <class P, class A>                                                               \
    TILE_DEVICE static void rs_set(W* d, const A* a, u64 b) {                                 \
      TILE_WGMMA_ASM("0", R, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, I6, I7,      \
                     TILE_LIST##R(SET), TILE_WGMMA_A);                                        \
    }                                                                                         \
  };
#define TILE_WGMMA_A "r"(word(a, 0)), "r"(word(a, 1)), "r"(word(a, 2)), "r"(word(a, 3))
#define TILE_WGMMA_ROW(...) TILE_WGMMA_BOTH(__VA_ARGS__)
#define TILE_WGMMA_FLOATS(R) TILE_WGMMA_ROW(R, float, TILE_ADD_F, TILE_SET_F, TILE_NEXT##R)
#define TILE_WGMMA_WORDS(R) TILE_WGMMA_ROW(R, u32, TILE_ADD_R, TILE_SET_R, TILE_NEXT##R)

// Those that a kernel uses; all, if nobody said which: it only takes time.
#ifndef TILE_WGMMA_SHAPES
#include "tile_cuda/wgmma_shapes.h"
#endif
TILE_WGMMA_SHAPES

// d += a @ b, or d = a @ b; an operand of 16 bits lies along M or N if its T is 1, else along K.
#define TILE_WGMMA(NAME)                                                                       \
  template <int N, int TA, int TB, class D, class A, class B>                                  \
  TILE_DEVICE void wgmma_s##NAME(D* d, wgmma_matrix<A> a, wgmma_matrix<B> b) {                 \
    using P = wgmma_product<N, TA, TB, D, A, B>;                                               \
    using W = typename P::word;                                                                \
    wgmma_call<P::registers, W>::template s##NAME<P>(reinterpret_cast<W*>(d), a.descriptor,    \
                                                     b.descriptor);                            \
  }                                                                                            \
  template <int N, int TB, class D, class A, class B>                                          \
  TILE_DEVICE void wgmma_r##NAME(D* d, const A* a, wgmma_matrix<B> b) {                        \
    using P = wgmma_product<N, -1, TB, D, A, B>;                                               \
    using W = typename P::word;                                                                \
    wgmma_call<P::registers, W>::template r##NAME<P>(reinterpret_cast<W*>(d), a, b.descriptor);\
  }
TILE_WGMMA(s)
TILE_WGMMA(s_set)
#undef TILE_WGMMA

// Threads of this warpgroup have R registers from here on: taken from a common store, or given.
template <int R>
TILE_DEVICE void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R));
}
template <int R>
TILE_DEVICE void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R));
}

}  // namespace tile
