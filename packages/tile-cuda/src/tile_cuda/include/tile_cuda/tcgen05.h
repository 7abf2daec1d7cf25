// Products whose sums are in tensor memory: 128 lanes of 512 columns, 32 bits each.
//
// One thread starts a product and goes on; that it is done is told by an arrival at a barrier.
// Warp w of a block reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31. Sums of row r are in lane r, a
// column each. Source: PTX ISA, "Tensor Memory" and "tcgen05".
#pragma once
#include "tile_cuda/matrix_descriptor.h"

namespace tile {

// By a whole warp: COLUMNS, a power of two from 32 to 512, until the same warp frees them. Where
// they begin is written to `place`. The block takes no more of them, so that others can.
// With `_pair`, both blocks of a pair take and free as many, each of its own. They have met before:
// whoever takes waits for the other.
#define TILE_TCGEN05_COLUMNS(SUFFIX, GROUP)                                                    \
  template <int COLUMNS>                                                                       \
  TILE_DEVICE void tcgen05_alloc##SUFFIX(u64* place) {                                         \
    static_assert(COLUMNS >= 32 && COLUMNS <= 512 && (COLUMNS & (COLUMNS - 1)) == 0,           \
                  "tile::tcgen05_alloc: columns are a power of two from 32 to 512");           \
    asm volatile("tcgen05.alloc.cta_group::" GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"( \
                     shared_address(place)),                                                   \
                 "n"(COLUMNS)                                                                  \
                 : "memory");                                                                  \
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::" GROUP ".sync.aligned;" ::: "memory"); \
  }                                                                                            \
  template <int COLUMNS>                                                                       \
  TILE_DEVICE void tcgen05_free##SUFFIX(int base) {                                            \
    asm volatile("tcgen05.dealloc.cta_group::" GROUP ".sync.aligned.b32 %0, %1;" ::"r"(base),  \
                 "n"(COLUMNS)                                                                  \
                 : "memory");                                                                  \
  }
TILE_TCGEN05_COLUMNS(, "1")
TILE_TCGEN05_COLUMNS(_pair, "2")
#undef TILE_TCGEN05_COLUMNS
TILE_DEVICE int tcgen05_base(const u64* place) { return static_cast<int>(*place); }

// Around what threads meet at: what was done in tensor memory before, and what is done after.
TILE_DEVICE void tcgen05_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
TILE_DEVICE void tcgen05_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// COUNT columns from `column` on: lane t of a warp has its lane t. They are there on return. Smaller
// elements than of 32 bits are several to a column.
#define TILE_TCGEN05_MOVE(N, REGISTERS)                                                         \
  template <>                                                                                  \
  struct tcgen05_columns<N> {                                                                  \
    TILE_DEVICE static void load(u32* d, u32 at) {                                             \
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x" #N ".b32 {" REGISTERS "}, [%" #N "];"    \
                   : TILE_TCGEN05_##N("=r")                                                    \
                   : "r"(at));                                                                 \
    }                                                                                          \
    TILE_DEVICE static void store(const u32* d, u32 at) {                                      \
      asm volatile("tcgen05.st.sync.aligned.32x32b.x" #N ".b32 [%" #N "], {" REGISTERS "};" :: \
                       TILE_TCGEN05_##N("r"),                                                  \
                   "r"(at)                                                                     \
                   : "memory");                                                                \
    }                                                                                          \
  };
template <int N>
struct tcgen05_columns;
#define TILE_TCGEN05_8(C) \
  C(d[0]), C(d[1]), C(d[2]), C(d[3]), C(d[4]), C(d[5]), C(d[6]), C(d[7])
#define TILE_TCGEN05_16(C) \
  C(d[0]), C(d[1]), C(d[2]), C(d[3]), C(d[4]), C(d[5]), C(d[6]), C(d[7]), C(d[8]), \
  C(d[9]), C(d[10]), C(d[11]), C(d[12]), C(d[13]), C(d[14]), C(d[15])
#define TILE_TCGEN05_32(C) \
  C(d[0]), C(d[1]), C(d[2]), C(d[3]), C(d[4]), C(d[5]), C(d[6]), C(d[7]), C(d[8]), \
  C(d[9]), C(d[10]), C(d[11]), C(d[12]), C(d[13]), C(d[14]), C(d[15]), C(d[16]), C(d[17]), \
  C(d[18]), C(d[19]), C(d[20]), C(d[21]), C(d[22]), C(d[23]), C(d[24]), C(d[25]), \
  C(d[26]), C(d[27]), C(d[28]), C(d[29]), C(d[30]), C(d[31])
TILE_TCGEN05_MOVE(8,
                  "%0, %1, %2, %3, %4, %5, %6, %7")
TILE_TCGEN05_MOVE(16,
                  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15")
TILE_TCGEN05_MOVE(32,
                  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
                  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31")
#undef TILE_TCGEN05_MOVE
#undef TILE_TCGEN05_8
#undef TILE_TCGEN05_16
#undef TILE_TCGEN05_32

TILE_DEVICE u32 tcgen05_lanes(int base, int column) {  // of this warp
  return base + column + ((threadIdx.x >> 5 & 3) << 21);
}
template <int COUNT, class T>
TILE_DEVICE void tcgen05_load(T* sums, int base, int column) {
  static_assert(COUNT % 8 == 0, "tile::tcgen05_load: columns are a multiple of 8");
  const u32 at = tcgen05_lanes(base, column);
  constexpr int wide = COUNT / 32 * 32, half = COUNT / 16 * 16;
  u32 d[COUNT];
  TILE_UNROLL
  for (int i = 0; i < wide; i += 32) tcgen05_columns<32>::load(d + i, at + i);
  if constexpr (half > wide) tcgen05_columns<16>::load(d + wide, at + wide);
  if constexpr (COUNT > half) tcgen05_columns<8>::load(d + half, at + half);
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  TILE_UNROLL
  for (int i = 0; i < COUNT; ++i) {
    asm volatile("" : "+r"(d[i]));  // nothing reads them earlier
    sums[i] = bitcast<T>(d[i]);
  }
}
template <int COUNT, class T>
TILE_DEVICE void tcgen05_store(const T* sums, int base, int column) {
  static_assert(COUNT % 8 == 0, "tile::tcgen05_store: columns are a multiple of 8");
  const u32 at = tcgen05_lanes(base, column);
  constexpr int wide = COUNT / 32 * 32, half = COUNT / 16 * 16;
  u32 d[COUNT];
  TILE_UNROLL
  for (int i = 0; i < COUNT; ++i) d[i] = word(sums, i);
  TILE_UNROLL
  for (int i = 0; i < wide; i += 32) tcgen05_columns<32>::store(d + i, at + i);
  if constexpr (half > wide) tcgen05_columns<16>::store(d + wide, at + wide);
  if constexpr (COUNT > half) tcgen05_columns<8>::store(d + half, at + half);
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// As `wgmma_operand`; the upper word says otherwise how rows are swizzled, and has a constant.
// Source: PTX ISA, "Shared memory descriptor" of tcgen05.
template <int SWIZZLE, int LEADING, int STRIDE, int NEXT = 0, int PART = 1 << 16, int FAR = 0,
          class T>
TILE_DEVICE described_matrix<T, NEXT, PART, FAR> tcgen05_operand(const T* shared, int units) {
  static_assert(SWIZZLE == 0 || SWIZZLE == 32 || SWIZZLE == 64 || SWIZZLE == 128,
                "tile::tcgen05_operand: rows that are swizzled have 0, 32, 64 or 128 bytes");
  static_assert(LEADING % 16 == 0 && STRIDE % 16 == 0 && LEADING < 262144 && STRIDE < 262144,
                "tile::tcgen05_operand: offsets are multiples of 16 bytes below 262144");
  constexpr u32 mode = SWIZZLE == 128 ? 2 : SWIZZLE == 64 ? 4 : SWIZZLE == 32 ? 6 : 0;
  return {matrix_descriptor_encode(shared_address(shared)) +
              (matrix_descriptor_encode(LEADING) << 16) + units,
          mode << 29 | 1 << 14 | matrix_descriptor_encode(STRIDE)};
}

// Kinds of products by the type of their first operand: how descriptors call it, the sums, and the
// instruction. That of 64 rows (`.ws`) has the right half of its sums in the lanes from 64 on.
template <class T>
struct tcgen05_type;
#define TILE_TCGEN05_ISSUE(NAME, FORM, GROUP, KIND, A, LETTER, PLACE)                           \
  TILE_DEVICE static void NAME(u32 d, A a, u64 b, u32 kind, u32 adds) {                        \
    asm volatile(                                                                              \
        "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %4, 0;\n\t"                               \
        "tcgen05.mma" FORM ".cta_group::" GROUP ".kind::" KIND " [%0], " PLACE                 \
        ", %2, %3, adds;\n\t}" ::"r"(d),                                                       \
        LETTER(a), "l"(b), "r"(kind), "r"(adds)                                                \
        : "memory");                                                                           \
  }
#define TILE_TCGEN05_TYPE(T, SUMS, CODE, KIND)                                                  \
  template <>                                                                                  \
  struct tcgen05_type<T> {                                                                     \
    static constexpr u32 sums = SUMS, code = CODE;                                             \
    TILE_TCGEN05_ISSUE(multiply, "", "1", KIND, u64, "l", "%1")                                \
    TILE_TCGEN05_ISSUE(multiply_256, "", "2", KIND, u64, "l", "%1")                            \
    TILE_TCGEN05_ISSUE(multiply_64, ".ws", "1", KIND, u64, "l", "%1")                          \
    TILE_TCGEN05_ISSUE(multiply_ts, "", "1", KIND, u32, "r", "[%1]")                           \
  };
TILE_TCGEN05_TYPE(half_t, 1, 0, "f16")
TILE_TCGEN05_TYPE(bfloat16_t, 1, 1, "f16")
TILE_TCGEN05_TYPE(float, 1, 2, "tf32")
TILE_TCGEN05_TYPE(e4m3, 1, 0, "f8f6f4")
TILE_TCGEN05_TYPE(e5m2, 1, 1, "f8f6f4")
TILE_TCGEN05_TYPE(u8, 2, 0, "i8")
TILE_TCGEN05_TYPE(i8, 2, 1, "i8")
#undef TILE_TCGEN05_TYPE
#undef TILE_TCGEN05_ISSUE

// M rows by N columns of sums from `column` on += a @ b, or = a @ b, over STEPS steps of K, by one
// thread; an operand lies along M or N if its T is 1, else along K. 64 rows have N / 2 columns. 256
// rows are of a pair of blocks: each has 128 of them and of the sums, and N / 2 columns of `b`, at the
// same places, and the first one starts them.
// Source: PTX ISA, "Instruction descriptor" of tcgen05.
template <int M, int N, int TA, int TB, int STEPS, class A, class B>
TILE_DEVICE void tcgen05_multiply(int base, int column, A a, B b, bool adds) {
  static_assert(M == 128 ? N % 16 == 0 && 16 <= N && N <= 256
                : M == 256 ? N % 32 == 0 && 32 <= N && N <= 256
                           : M == 64 && (N == 64 || N == 128 || N == 256),
                "tile::tcgen05_mma: 128 rows of 16 to 256 columns, 256 of 32 to 256, or 64 of 64, 128 "
                "or 256");
  using a_type = tcgen05_type<typename A::element>;
  using b_type = tcgen05_type<typename B::element>;
  constexpr int bytes = sizeof(typename A::element);
  static_assert(bytes == sizeof(typename B::element) && a_type::sums == b_type::sums &&
                    (bytes == 1 || a_type::code == b_type::code),
                "tile::tcgen05_mma: both operands have one type, or are 8-bit floats or integers");
  static_assert(bytes != 4 || (TA == 0 && TB == 0),
                "tile::tcgen05_mma: operands of 32 bits lie along K");
  constexpr u32 kind = a_type::sums << 4 | a_type::code << 7 | b_type::code << 10 | TA << 15 |
                       TB << 16 | N / 8 << 17 | M / 16 << 24;
  TILE_UNROLL
  for (int k = 0; k < STEPS; ++k) {
    if constexpr (M == 64) a_type::multiply_64(base + column, a.at(k), b.at(k), kind, adds || k);
    else if constexpr (M == 256) a_type::multiply_256(base + column, a.at(k), b.at(k), kind, adds || k);
    else a_type::multiply(base + column, a.at(k), b.at(k), kind, adds || k);
  }
}
template <int M, int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma(int base, int column, A a, B b) {
  tcgen05_multiply<M, N, TA, TB, STEPS>(base, column, a, b, true);
}
template <int M, int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma_set(int base, int column, A a, B b) {
  tcgen05_multiply<M, N, TA, TB, STEPS>(base, column, a, b, false);
}
template <int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma_pair(int base, int column, A a, B b) {
  tcgen05_multiply<256, N, TA, TB, STEPS>(base, column, a, b, true);
}
template <int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma_pair_set(int base, int column, A a, B b) {
  tcgen05_multiply<256, N, TA, TB, STEPS>(base, column, a, b, false);
}
// As above, with 128 rows of the first operand in tensor memory from `a_column` on, 8 columns a step.
template <int N, int TB, int STEPS, class B>
TILE_DEVICE void tcgen05_multiply_ts(int base, int column, int a_column, B b, bool adds) {
  static_assert(N % 16 == 0 && 16 <= N && N <= 256, "tile::tcgen05_mma_ts: 16 to 256 columns");
  using type = tcgen05_type<typename B::element>;
  static_assert(sizeof(typename B::element) != 4 || TB == 0,
                "tile::tcgen05_mma_ts: operands of 32 bits lie along K");
  constexpr u32 kind = type::sums << 4 | type::code << 7 | type::code << 10 | TB << 16 |
                       N / 8 << 17 | 128 / 16 << 24;
  const u32 a = base + a_column;
  TILE_UNROLL
  for (int k = 0; k < STEPS; ++k) type::multiply_ts(base + column, a + 8 * k, b.at(k), kind, adds || k);
}
template <int N, int TB, int STEPS = 1, class B>
TILE_DEVICE void tcgen05_mma_ts(int base, int column, int a_column, B b) {
  tcgen05_multiply_ts<N, TB, STEPS>(base, column, a_column, b, true);
}
template <int N, int TB, int STEPS = 1, class B>
TILE_DEVICE void tcgen05_mma_ts_set(int base, int column, int a_column, B b) {
  tcgen05_multiply_ts<N, TB, STEPS>(base, column, a_column, b, false);
}
// 4 columns from `column` on get the scales of 128 rows, four of each along K, that 512 bytes from
// `scales` on hold: those of row r at (r % 32) * 16 + r / 32 * 4. By the thread of the products that
// read them: what it starts comes in order, also a copy behind products that read what was there.
// Source: PTX ISA, "Scale factor layout" and "Memory consistency" of tcgen05.
template <class S>
TILE_DEVICE void tcgen05_scales(int base, int column, const S* scales) {
  const u64 from = static_cast<u64>(1 << 14 | matrix_descriptor_encode(128)) << 32 |
                   matrix_descriptor_encode(shared_address(scales));
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(base + column), "l"(from)
               : "memory");
}
// As `tcgen05_mma`, with scales for groups along K: those of A in 4 columns from `a_scales` on, those
// of B in 4 for each 128 of its columns, from `b_scales` on. Of the four of a row each step takes as
// many as it has GROUPS, the first step from that of `first` on: one of 32 8-bit floats; or two of 32,
// or four of 16, 4-bit floats, where bytes are pairs of these (e2m1). Groups of 16 have e4m3 for
// scales, others powers of two. Source: PTX ISA, "Instruction descriptor".
template <int GROUPS>
struct tcgen05_scaled;
#define TILE_TCGEN05_SCALED(GROUPS, SCALES, KIND)                                                \
  template <>                                                                                   \
  struct tcgen05_scaled<GROUPS> {                                                               \
    static constexpr u32 scales = SCALES;                                                       \
    TILE_DEVICE static void multiply(u32 d, u64 a, u64 b, u32 kind, u32 sfa, u32 sfb, u32 adds) { \
      asm volatile("{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %4, 0;\n\t"                      \
                   "tcgen05.mma.cta_group::1.kind::" KIND                                       \
                   " [%0], %1, %2, %3, [%5], [%6], adds;\n\t}" ::"r"(d),                       \
                   "l"(a), "l"(b), "r"(kind), "r"(adds), "r"(sfa), "r"(sfb)                     \
                   : "memory");                                                                 \
    }                                                                                           \
  };
TILE_TCGEN05_SCALED(1, 1, "mxf8f6f4.block_scale.block32")
TILE_TCGEN05_SCALED(2, 1, "mxf4.block_scale.block32")
TILE_TCGEN05_SCALED(4, 0, "mxf4nvf4.block_scale.block16")
#undef TILE_TCGEN05_SCALED
template <int M, int N, int TA, int TB, int STEPS, int GROUPS, class A, class B>
TILE_DEVICE void tcgen05_multiply_scaled(int base, int column, A a, B b, int a_scales, int b_scales,
                                         int first, bool adds) {
  static_assert(M == 128 && N % 16 == 0 && 16 <= N && N <= 256,
                "tile::tcgen05_mma_scaled: 128 rows of 16 to 256 columns");
  static_assert(STEPS * GROUPS <= 4, "tile::tcgen05_mma_scaled: a row has four scales");
  using a_type = tcgen05_type<typename A::element>;
  using b_type = tcgen05_type<typename B::element>;
  constexpr bool pairs = GROUPS > 1;
  constexpr bool are_bytes = sizeof(typename A::element) == 1 && sizeof(typename B::element) == 1;
  static_assert(are_bytes && (pairs ? a_type::code + b_type::code == 0 && a_type::sums == 2 &&
                                          b_type::sums == 2 && TA + TB == 0
                                    : a_type::sums == 1 && b_type::sums == 1),
                "tile::tcgen05_mma_scaled: operands are 8-bit floats, or pairs of 4-bit ones along K");
  constexpr u32 types = pairs ? 1 << 7 | 1 << 10 : a_type::code << 7 | b_type::code << 10;
  using scaled = tcgen05_scaled<GROUPS>;
  constexpr u32 kind =
      types | TA << 15 | TB << 16 | N / 8 << 17 | scaled::scales << 23 | M / 16 << 24;
  TILE_UNROLL
  for (int k = 0; k < STEPS; ++k) {
    const u32 group = first + k * GROUPS;
    scaled::multiply(base + column, a.at(k), b.at(k), kind | group << 4 | group << 29,
                     base + a_scales, base + b_scales, adds || k);
  }
}
template <int M, int N, int TA, int TB, int STEPS = 1, int GROUPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma_scaled(int base, int column, A a, B b, int a_scales, int b_scales,
                                    int first) {
  tcgen05_multiply_scaled<M, N, TA, TB, STEPS, GROUPS>(base, column, a, b, a_scales, b_scales, first,
                                                       true);
}
template <int M, int N, int TA, int TB, int STEPS = 1, int GROUPS = 1, class A, class B>
TILE_DEVICE void tcgen05_mma_scaled_set(int base, int column, A a, B b, int a_scales, int b_scales,
                                        int first) {
  tcgen05_multiply_scaled<M, N, TA, TB, STEPS, GROUPS>(base, column, a, b, a_scales, b_scales, first,
                                                       false);
}
// An arrival at `bar` once all products that this thread has started are done.
TILE_DEVICE void tcgen05_commit(u64* bar) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
          shared_address(bar))
      : "memory");
}
// The same at `bar` of both blocks of a cluster of two.
TILE_DEVICE void tcgen05_commit_pair(u64* bar) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
      " [%0], %1;" ::"r"(shared_address(bar)),
      "h"(static_cast<u16>(3))
      : "memory");
}
// An arrival at `bar` of the first block, that tells of what was done in tensor memory, too.
TILE_DEVICE void tcgen05_tell_first(u64* bar) {
  tcgen05_before();
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   shared_address(bar) & 0xfeffffff)
               : "memory");
}

}  // namespace tile
