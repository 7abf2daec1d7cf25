// What compiled kernels call in the runtime library. C linkage, so that kernels and runtime may
// come from different compilers; every function ends with the line of the source it stands for.
//
// The structures shared with the launching side (tsim_buffer, tsim_kernel, …) are declared in
// `runtime/abi.h`.
#pragma once

#include "abi.h"
#include "tile_sim/types.h"

extern "C" {

// What is known of a byte in registers. It may be read if the highest bit is set, and be written if
// TSIM_BUSY is not.
enum tsim_register_flag {
  TSIM_UNWRITTEN = 0,
  TSIM_WRITTEN = 0x81,     // by the thread, since its last fence
  TSIM_FENCED = 0x80,      // before that, or by a product that is done
  TSIM_BUSY = 0x02,
  TSIM_SUMMED = 0x02,      // a product that is under way writes it
  TSIM_LENT = 0x82,        // a product that is under way reads it
};

// Registers of one thread from byte `offset` on, of an array of `bytes` bytes. `written` has a
// tsim_register_flag for each byte of the values, and one byte more: whether engines know of them.
struct tsim_registers {
  unsigned char* values;
  unsigned char* written;
  int offset;
  int bytes;
  int element_bytes;
};

// A place in shared memory, and the logical buffer that it must stay in.
struct tsim_shared {
  unsigned char* address;
  unsigned char* begin;
  unsigned char* end;
};

// A place in global memory, and the buffer that it must stay in.
struct tsim_global {
  unsigned char* address;
  const struct tsim_buffer* buffer;
};

// Where a thread is. Axis 0 is x.
int tsim_thread_index(int axis);
int tsim_block_index(int axis);
int tsim_block_dim(int axis);
int tsim_grid_dim(int axis);

// Memory. Each call checks one access of one lane, then the header reads or writes the bytes.
// A write brings the new value: writing again what the same line has written is no conflict.
unsigned char* tsim_shared_arena(unsigned offset, unsigned bytes, unsigned line);
void tsim_read_shared(const tsim_shared* place, unsigned bytes, unsigned line);
void tsim_write_shared(const tsim_shared* place, const void* value, unsigned bytes, unsigned line);
void tsim_read_global(const tsim_global* place, unsigned bytes, unsigned line);
void tsim_write_global(const tsim_global* place, const void* value, unsigned bytes, unsigned line);
const struct tsim_buffer* tsim_unbounded_buffer(void);
// A function of the user gets a pointer: from there to the end of the buffer it may write anything.
void tsim_hand_over_shared(const tsim_shared* place);

// Registers that must not be read, or written. Those that are none at all: this one does not
// return, for the next step would overwrite the stack of the host.
void tsim_unreadable_register(const unsigned char* value, const unsigned char* flags, int index,
                              unsigned line);
void tsim_busy_register(const unsigned char* value, int index, unsigned line);
// Registers that engines know of go out of use.
void tsim_forget_registers(const unsigned char* flags, unsigned bytes);
void tsim_register_out_of_bounds(int index, int count, unsigned line);
// The registers that an operation reads or writes: checked, and marked as written.
const void* tsim_read_registers(const tsim_registers* r, unsigned bytes, unsigned line);
void* tsim_write_registers(const tsim_registers* r, unsigned bytes, unsigned line);

// Asynchronous copies.
void tsim_copy_async(const tsim_shared* to, const tsim_global* from, unsigned bytes, int predicate,
                     unsigned line);
void tsim_copy_commit(unsigned line);
void tsim_copy_wait(int pending, unsigned line);
// Those of waves of 64 lanes: `offset` counts bytes from the tensor, by an index of 32 bits or
// more; `left` may stay under way.
void tsim_lds_load(const tsim_shared* to, const tsim_global* tensor, long long offset,
                   unsigned bytes, int predicate, int is_narrow, unsigned line);
void tsim_lds_wait(int left, unsigned line);

// The thread returns before the kernel's end: barriers are not for it any more.
void tsim_leave(void);

// Barriers. Kinds of tsim_sync_count: 0 counts the true predicates, 1 is "all", 2 is "any".
void tsim_fence(void);
void tsim_sync(unsigned line);
int tsim_sync_count(int kind, int predicate, unsigned line);
void tsim_bar_sync(int barrier, int threads, unsigned line);
void tsim_bar_arrive(int barrier, int threads, unsigned line);
void tsim_sync_warp(unsigned long long mask, unsigned line);

// Warp operations.
enum tsim_shuffle_kind { TSIM_SHUFFLE_XOR, TSIM_SHUFFLE_INDEX, TSIM_SHUFFLE_DOWN, TSIM_SHUFFLE_UP };
unsigned long long tsim_shuffle(int kind, unsigned long long value, int argument, int width,
                                unsigned line);
unsigned long long tsim_ballot(int predicate, unsigned line);
unsigned long long tsim_match_any(unsigned long long value, unsigned line);
unsigned long long tsim_match_all(unsigned long long value, unsigned line);
unsigned long long tsim_active_lanes(unsigned line);
void tsim_uniform(unsigned long long value, unsigned line);

// Barriers in memory. `rank` is that of a block of the cluster, or -1 for the thread's own.
void tsim_mbarrier_init(const tsim_shared* place, unsigned arrivals, unsigned line);
void tsim_mbarrier_arrive(const tsim_shared* place, int rank, unsigned line);
void tsim_mbarrier_expect(const tsim_shared* place, unsigned bytes, int arrives, unsigned line);
void tsim_mbarrier_wait(const tsim_shared* place, unsigned parity, unsigned line);
void tsim_copy_async_arrive(const tsim_shared* place, unsigned line);
void tsim_fence_mbarrier_init(unsigned line);
void tsim_fence_proxy_async(unsigned line);

// Copies by engines. Boxes of a map are at coordinates `at`, one of its rank each, innermost first;
// `mask` has a bit for each block of the cluster that receives a box, or is 0: the own one.
struct tsim_tensor_map;
void tsim_tensor_load(const tsim_shared* to, const struct tsim_tensor_map* map,
                      const tsim_shared* barrier, unsigned mask, const int* at, int rank,
                      unsigned line);
// On the barrier of the first block of a pair.
void tsim_tensor_load_pair(const tsim_shared* to, const struct tsim_tensor_map* map,
                           const tsim_shared* barrier, const int* at, int rank, unsigned line);
void tsim_bulk_load(const tsim_shared* to, const tsim_global* from, unsigned bytes,
                    const tsim_shared* barrier, unsigned line);
void tsim_bulk_copy_remote(const tsim_shared* to, int rank, const tsim_shared* from,
                           unsigned bytes, const tsim_shared* barrier, unsigned line);
// Out of shared memory: `reduction` is a tsim_atomic_operation, or -1 for a store.
void tsim_tensor_store(const struct tsim_tensor_map* map, const tsim_shared* from, int reduction,
                       const int* at, int rank, unsigned line);
void tsim_bulk_store(const tsim_global* to, const tsim_shared* from, unsigned bytes, int reduction,
                     int type, unsigned line);
void tsim_bulk_commit(unsigned line);
// `reads`: until shared memory is read, else until all is done.
void tsim_bulk_wait(int pending, int reads, unsigned line);
void tsim_tensor_prefetch(const struct tsim_tensor_map* map, unsigned line);

// Matrices. Element types are tsim_type; shapes are m << 16 | n << 8 | k.
// Layouts of mma_m8n8k4 on 16-bit floats: set bits say that an operand is stored by columns.
enum tsim_mma_columns { TSIM_A_BY_COLUMNS = 1, TSIM_B_BY_COLUMNS = 2 };
void tsim_load_matrix(const tsim_registers* to, const tsim_shared* row, int matrices,
                      int transposed, unsigned line);
void tsim_store_matrix(const tsim_shared* row, const tsim_registers* from, int matrices,
                       int transposed, unsigned line);
void tsim_mma(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b, int shape,
              int d_type, int a_type, int b_type, int columns, unsigned line);
// Of m16n8, with scales for groups along K in bytes of the lanes' words.
struct tsim_scaled_product {
  int k;
  int a_type;
  int b_type;
  int scale_type;
  int a_byte;
  int a_lane;
  int b_byte;
  int b_lane;
};
void tsim_mma_scaled(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b,
                     const tsim_registers* sfa, const tsim_registers* sfb,
                     const struct tsim_scaled_product* product, unsigned line);
// Of 64 lanes: `pack` instructions with successive k. Elements of an operand are in each stride-th
// of its registers.
struct tsim_wave_product {
  int shape;
  int pack;
  int d_stride;
  int a_stride;
  int b_stride;
  int d_type;
  int a_type;
  int b_type;
};
void tsim_mfma(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b,
               const struct tsim_wave_product* kind, unsigned line);

// Products of warpgroups. An operand in shared memory begins 16 * `units` bytes behind its place.
struct tsim_operand {
  struct tsim_shared place;
  int swizzle;
  int leading;
  int stride;
  int units;
};
struct tsim_product {
  int columns;
  int a_across;        // A lies along M, else along K
  int b_across;        // B lies along N, else along K
  int sets;            // d = a * b, else d += a * b
  int d_type;
  int a_type;
  int b_type;
};
// Of `a` and `a_registers` one is null.
void tsim_wgmma(const tsim_registers* d, const struct tsim_operand* a,
                const tsim_registers* a_registers, const struct tsim_operand* b,
                const struct tsim_product* product, unsigned line);
void tsim_wgmma_pin(const tsim_registers* d, unsigned bytes, unsigned line);
void tsim_wgmma_fence(unsigned line);
void tsim_wgmma_commit(unsigned line);
void tsim_wgmma_wait(int pending, unsigned line);
// Tensor memory. Who takes columns first of a warp learns their address, others ~0. An address is
// a column, behind the number of a lane in the upper half. Pairs of blocks do so with 2 for `blocks`.
unsigned tsim_tensor_take(unsigned columns, int blocks, unsigned line);
void tsim_tensor_free(unsigned address, unsigned columns, int blocks, unsigned line);
void tsim_tensor_move(const tsim_registers* registers, unsigned address, unsigned columns,
                      int is_load, unsigned line);
void tsim_tensor_fence(int is_after, unsigned line);
// Without `a`, the first operand is there too, at an address of its own. Of 256 rows each block of a
// pair has 128, and half of the columns of `b`.
void tsim_tensor_product(unsigned address, const struct tsim_operand* a, unsigned a_address,
                         const struct tsim_operand* b, const struct tsim_product* product, int rows,
                         unsigned line);
// Scales of 128 rows, four of each, into 4 columns; and a product of 128 rows that takes so many of
// each row's as it has `groups` along K, from the one `chosen` on: 4 columns for A, 4 for each 128
// columns of B. Groups of bytes have powers of two; bytes with 2 or 4 groups are pairs of e2m1, and
// have powers of two, or e4m3.
struct tsim_scales {
  unsigned a_address;
  unsigned b_address;
  int chosen;
  int groups;
};
void tsim_tensor_scales(unsigned address, const struct tsim_shared* from, int type, unsigned line);
void tsim_tensor_scaled_product(unsigned address, const struct tsim_operand* a,
                                const struct tsim_operand* b, const struct tsim_product* product,
                                const struct tsim_scales* scales, unsigned line);
void tsim_tensor_commit(const struct tsim_shared* barrier, int blocks, unsigned line);
void tsim_set_registers(int count, int increases, unsigned line);
int tsim_elect(unsigned line);

// Clusters. Arriving leaves what the thread did for others, or not.
void tsim_cluster_arrive(int releases, unsigned line);
void tsim_cluster_wait(unsigned line);
int tsim_cluster_rank(void);
tsim_shared tsim_remote(const tsim_shared* place, int rank, unsigned line);
// Grids that depend on each other: this one waits, or allows others to begin.
void tsim_grid_dependency(int launches, unsigned line);

// Atomic operations on `count` elements; `old` receives what was there, unless null. `value` holds
// two elements for TSIM_ATOMIC_CAS: what is expected and what replaces it.
enum tsim_atomic_operation {
  TSIM_ATOMIC_ADD, TSIM_ATOMIC_MAX, TSIM_ATOMIC_MIN, TSIM_ATOMIC_AND, TSIM_ATOMIC_OR,
  TSIM_ATOMIC_XOR, TSIM_ATOMIC_EXCHANGE, TSIM_ATOMIC_CAS, TSIM_ATOMIC_LOAD, TSIM_ATOMIC_STORE,
};
void tsim_atomic_shared(int operation, int type, const tsim_shared* place, const void* value,
                        void* old, int count, unsigned line);
void tsim_atomic_global(int operation, int type, const tsim_global* place, const void* value,
                        void* old, int count, unsigned line);

// The low four bits of a byte, or with a shift of 4 the high ones, indivisibly.
void tsim_store_nibble_shared(const tsim_shared* place, int shift, unsigned char bits,
                              unsigned line);
void tsim_store_nibble_global(const tsim_global* place, int shift, unsigned char bits,
                              unsigned line);

// Numbers that are no single instruction of the host.
double tsim_narrow_to_float(unsigned code, int exponent, int mantissa, int bias, int codes);
unsigned tsim_float_to_narrow(double x, int exponent, int mantissa, int bias, int codes,
                              int saturate);
double tsim_rounded(int operation, double a, double b, double c, int mode, int is_double);
enum tsim_rounded_operation {
  TSIM_ROUND_ADD, TSIM_ROUND_SUB, TSIM_ROUND_MUL, TSIM_ROUND_FMA, TSIM_ROUND_RCP,
  TSIM_ROUND_SQRT, TSIM_ROUND_RSQRT, TSIM_ROUND_DIV,
};

// Text. Values are widened to 64 bits; `kinds` has one letter for each: d, u, f or s.
void tsim_print(const char* format, const char* kinds, const unsigned long long* values,
                unsigned line);
void tsim_assertion_failed(const char* text, unsigned line);
// An operation without a result, such as a division by zero; ends the block.
void tsim_undefined(const char* text, unsigned line);

}  // extern "C"
