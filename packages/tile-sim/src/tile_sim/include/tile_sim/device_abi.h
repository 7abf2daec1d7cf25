// What compiled kernels call in the runtime library. C linkage, so that kernels and runtime may
// come from different compilers; every function ends with the line of the source it stands for.
//
// The structures shared with the launching side (tsim_buffer, tsim_kernel, …) are declared in
// `runtime/abi.h`.
#pragma once

#include "tile_sim/types.h"

extern "C" {

struct tsim_buffer;

// Registers of one thread from byte `offset` on, of an array of `bytes` bytes. `written` has a byte
// for each byte of the values: 0xff once it is written, 0 before.
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

// Registers. The first returns (it may be off); the second does not, for the next step would
// overwrite the stack of the host.
void tsim_uninitialised_register(int index, unsigned line);
void tsim_register_out_of_bounds(int index, int count, unsigned line);
// The registers that an operation reads or writes: checked, and marked as written.
const void* tsim_read_registers(const tsim_registers* r, unsigned bytes, unsigned line);
void* tsim_write_registers(const tsim_registers* r, unsigned bytes, unsigned line);

// Asynchronous copies.
void tsim_copy_async(const tsim_shared* to, const tsim_global* from, unsigned bytes, int predicate,
                     unsigned line);
void tsim_copy_commit(unsigned line);
void tsim_copy_wait(int pending, unsigned line);

// Barriers. Kinds of tsim_sync_count: 0 counts the true predicates, 1 is "all", 2 is "any".
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
int tsim_warp_size(void);

// Matrices. Element types are tsim_type; shapes are m << 16 | n << 8 | k.
enum tsim_type {
  TSIM_BOOL, TSIM_I8, TSIM_U8, TSIM_I16, TSIM_U16, TSIM_I32, TSIM_U32, TSIM_I64, TSIM_U64,
  TSIM_F16, TSIM_BF16, TSIM_F32, TSIM_F64, TSIM_E4M3, TSIM_E5M2, TSIM_I4, TSIM_U4,
};
// Layouts of mma_m8n8k4 on 16-bit floats: set bits say that an operand is stored by columns.
enum tsim_mma_columns { TSIM_A_BY_COLUMNS = 1, TSIM_B_BY_COLUMNS = 2 };
void tsim_load_matrix(const tsim_registers* to, const tsim_shared* row, int matrices,
                      int transposed, unsigned line);
void tsim_store_matrix(const tsim_shared* row, const tsim_registers* from, int matrices,
                       int transposed, unsigned line);
void tsim_mma(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b, int shape,
              int d_type, int a_type, int b_type, int columns, unsigned line);

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

}  // extern "C"
