// The C interface of the emulator's shared library: launching a kernel, and what a launch returns.
//
// Python (ctypes) is the client of this file. The functions that *compiled kernels* call live in
// `include/tile_sim/device_abi.h`; both halves are implemented by the one library in `runtime/`.
//
// Every structure is plain C: fixed-width fields, natural alignment, no bit fields. A structure
// grows only at its end, and every such change raises TSIM_ABI_VERSION.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSIM_ABI_VERSION 9

// ---------------------------------------------------------------------------------------------
// Kernels. `TILE_EXPORT(gemm)` of an emitted source defines the symbol `tsim_kernel_gemm`, an
// object of this type; `ctypes.c_char.in_dll(library, "tsim_kernel_gemm")` gives its address.

enum tsim_parameter_kind {
  TSIM_SCALAR = 0,          // the argument points to the value, in the parameter's own C type
  TSIM_READ_ONLY = 1,       // gptr<const T>: the argument points to a tsim_buffer
  TSIM_READ_WRITE = 2,      // gptr<T>:       the argument points to a tsim_buffer
  TSIM_TENSOR_MAP = 3,      // tensor_map:    the argument points to a tsim_tensor_map
};

// Types of elements.
enum tsim_type {
  TSIM_BOOL, TSIM_I8, TSIM_U8, TSIM_I16, TSIM_U16, TSIM_I32, TSIM_U32, TSIM_I64, TSIM_U64,
  TSIM_F16, TSIM_BF16, TSIM_F32, TSIM_F64, TSIM_E4M3, TSIM_E5M2, TSIM_I4, TSIM_U4,
  TSIM_E4M3_FNUZ, TSIM_E5M2_FNUZ, TSIM_E8M0,
};

typedef struct tsim_parameter {
  uint32_t kind;            // tsim_parameter_kind
  uint32_t bytes;           // size of the scalar, or of one element of the buffer
} tsim_parameter;

typedef struct tsim_kernel {
  void (*run)(void** arguments);      // one thread's execution; called by the scheduler only
  uint32_t parameter_count;
  uint32_t warp_size;       // that it was compiled for: 32 or 64
  const tsim_parameter* parameters;
  const char* name;
} tsim_kernel;

// A global buffer as an argument. The launch keeps no reference to it after it returns.
// Align `data` to 256 bytes as device allocators do, or the sector counters are distorted.
typedef struct tsim_buffer {
  void* data;
  uint64_t bytes;           // accesses outside [data, data + bytes) are reported
  const char* name;         // for reports; may be null
  void* shadow;             // used by the runtime during a launch; set it to null
} tsim_buffer;

enum { TSIM_MAX_RANK = 5 };

// A tensor in global memory as bulk copies see it: boxes of a grid of elements, innermost
// dimension first. What must hold of it is the caller's to check.
typedef struct tsim_tensor_map {
  tsim_buffer buffer;       // that every element lies in
  void* data;               // the element at coordinates 0
  uint32_t rank;            // 1 to TSIM_MAX_RANK
  uint32_t type;            // tsim_type
  uint32_t element_bytes;
  uint32_t swizzle;         // bytes of a row whose chunks change places: 0, 32, 64, 128
  uint32_t fills_nan;       // elements outside read as NaN, else as zero
  uint32_t is_written;      // by some copy of the kernel
  int64_t extents[TSIM_MAX_RANK];
  int64_t strides[TSIM_MAX_RANK];   // bytes; the first is element_bytes
  uint32_t box[TSIM_MAX_RANK];
  uint32_t element_strides[TSIM_MAX_RANK];
} tsim_tensor_map;

// ---------------------------------------------------------------------------------------------
// What a launch checks and counts: bits of tsim_config.checks. Deadlocks, faults, divergent warp
// operations, failed assertions and invalid arguments are always reported.

enum tsim_check {
  TSIM_CHECK_BOUNDS = 1,      // accesses outside their logical buffer; misaligned vectors
  TSIM_CHECK_UNINIT = 2,      // reads of shared memory or registers that nothing has written
  TSIM_CHECK_RACE = 4,        // unordered conflicting accesses to shared and global memory
  TSIM_CHECK_WAIT = 8,        // accesses to the destination of a copy that is not waited for
  TSIM_CHECK_BARRIER = 16,    // threads of a block that meet at different barrier statements
  TSIM_CHECK_ALL = 31,
  TSIM_COUNT_BANKS = 32,      // transactions that accesses to shared memory take
  TSIM_COUNT_SECTORS = 64,    // sectors that accesses to global memory touch
};

// Which thread runs next when several could.
enum tsim_schedule {
  TSIM_FORWARD = 0,           // lowest warp, lowest lane
  TSIM_REVERSE = 1,           // highest warp, highest lane
  TSIM_RANDOM = 2,            // drawn from `seed` and the block's index
};

// When the bytes of an asynchronous copy arrive. Until then the destination holds poison.
enum tsim_async_mode {
  TSIM_LATE = 0,              // at the wait that covers the copy: the strictest legal engine
  TSIM_EARLY = 1,             // at once
  TSIM_ANY_TIME = 2,          // drawn for each copy
};

typedef struct tsim_config {
  uint32_t grid[3];
  uint32_t block[3];          // x * y * z in 1..1024
  uint32_t warp_size;         // 32 or 64
  uint32_t shared_bytes;      // size of the block's arena
  uint32_t checks;            // tsim_check bits
  uint32_t schedule;          // tsim_schedule
  uint32_t async_mode;        // tsim_async_mode
  uint32_t os_threads;        // host threads that share the blocks; 0 means 1
  uint64_t seed;
  uint32_t max_reports;       // no new block starts after so many different reports; 0 means 20
  uint32_t stack_bytes;       // of one thread; 0 means 262144
  uint32_t time_limit_ms;     // threads that still run then are abandoned and reported; 0: none
  uint32_t cluster[3];        // blocks that run together; 0 means 1. The grid is a multiple of it
  uint32_t banks;             // of shared memory, four bytes each: 32 or 64; 0 means 32
  uint32_t sector_bytes;      // of global memory, a power of two up to 128; 0 means 32
  uint32_t resident;          // blocks whose registers a multiprocessor holds; 0 means 1
  int* stop;                  // what tsim_stop is told of the launch; null: it cannot be stopped
  uint32_t cooperative;       // whether all blocks run together; then there are no clusters
} tsim_config;

// ---------------------------------------------------------------------------------------------
// What a launch returns.

enum tsim_report_kind {
  TSIM_OUT_OF_BOUNDS = 1,
  TSIM_MISALIGNED = 2,
  TSIM_UNINITIALISED = 3,
  TSIM_DATA_RACE = 4,
  TSIM_MISSING_WAIT = 5,
  TSIM_BARRIER = 6,           // divergent barrier, or one barrier with different thread counts
  TSIM_DEADLOCK = 7,
  TSIM_DIVERGENCE = 8,        // lanes of a warp disagree about a warp operation
  TSIM_ASSERTION = 9,         // tile::assert_that
  TSIM_FAULT = 10,            // a wild access of the host process, a stack overflow
  TSIM_INVALID = 11,          // a device function called with arguments it does not take
  TSIM_TIME_LIMIT = 12,
  TSIM_PROTOCOL = 13,         // an mbarrier, a cluster or an engine used against its rules
  TSIM_MISSING_FENCE = 14,    // between threads and engines that share memory or registers
  TSIM_UNDEFINED = 15,        // an operation without a result
};

// What of a thread did something: itself, or an engine that it started.
enum tsim_actor {
  TSIM_THREAD = 0,
  TSIM_COPY = 1,              // a bulk copy into shared memory
  TSIM_PRODUCT = 2,           // the wgmma of its warpgroup
  TSIM_STORE = 3,             // a bulk copy out of shared memory
  TSIM_LOAD = 4,              // the lds_loads of its wave of 64
  TSIM_TENSOR_PRODUCT = 5,    // a product with sums in tensor memory
};

enum tsim_space {
  TSIM_NO_MEMORY = 0,
  TSIM_REGISTERS = 1,
  TSIM_SHARED = 2,
  TSIM_GLOBAL = 3,
  TSIM_BOXES = 4,             // counters only: global memory, by bulk copies
  TSIM_OPERANDS = 5,          // counters only: shared memory, by products of warpgroups
};

// One finding. Findings of one kind at one line (and the same other line) are one record.
typedef struct tsim_report {
  uint32_t kind;              // tsim_report_kind
  uint32_t space;             // tsim_space of the memory concerned
  uint32_t line;              // line of the emitted source, 1-based; 0 if unknown
  uint32_t other_line;        // the earlier, conflicting operation; 0 if there is none
  int32_t thread;             // linear index in the block; -1 if no single thread is to blame
  int32_t other_thread;       // -1 if there is none
  uint32_t block[3];
  uint32_t other_block[3];    // equals `block` unless blocks conflict with each other
  uint64_t count;             // how often it happened, this first time included
  uint64_t offset;            // of the access: bytes from the start of the buffer (negative ones
                              // as two's complement); of registers: the element's index
  uint64_t bytes;             // size of the access; 0 for one register
  uint64_t buffer_start;      // shared: byte offset in the arena of the logical buffer; 0 if the
                              // finding counts from the start of the arena
  uint64_t buffer_bytes;      // size of that buffer; of registers: the number of elements
  const char* buffer;         // name of the global buffer; null otherwise
  const char* message;        // one or more lines of plain text; says everything above in words
  uint64_t threads[16];       // bit t % 64 of word t / 64: it happened to thread t of `block`
  uint32_t actor;             // tsim_actor: what of `thread` it was
  uint32_t other_actor;       // and of `other_thread`
} tsim_report;

// Counts of one line for one kind of access, summed over all warps and blocks. Bulk copies count as
// one request each, products as one of their warpgroup.
typedef struct tsim_counter {
  uint32_t line;
  uint32_t space;             // tsim_space
  uint32_t is_write;
  uint32_t bytes_per_lane;
  uint64_t requests;          // warp-wide operations, or what engines were asked for
  uint64_t bytes;             // that the lanes asked for
  uint64_t transactions;        // shared: passes through the banks of four bytes
  uint64_t ideal_transactions;  // shared: what conflict-free addresses would take
  uint64_t sectors;           // global: sectors touched, counted once per request
  uint64_t ideal_sectors;     // global: what dense, aligned addresses would touch
} tsim_counter;

typedef struct tsim_result {
  uint64_t report_count;
  const tsim_report* reports;         // in the order of discovery
  uint64_t counter_count;
  const tsim_counter* counters;       // by line, then space
  uint64_t output_bytes;
  const char* output;                 // text of tile::print, zero-terminated
  uint64_t total_findings;            // sum of tsim_report.count
  uint64_t blocks_run;
  uint64_t switches;                  // between threads
  uint64_t collectives;               // warp operations executed
  uint64_t barriers;                  // block barriers released
  uint64_t async_copies;             // of threads
  uint64_t shared_accesses;
  uint64_t global_accesses;
  double seconds;
  uint64_t bulk_copies;              // boxes and rows that engines moved
  uint64_t products;                 // wgmma instructions of whole warpgroups
} tsim_result;

// Version of the interface that the library was built from: compare with TSIM_ABI_VERSION.
uint32_t tsim_abi_version(void);

// Runs a grid to its end and returns what was found; never null. `arguments[i]` follows
// kernel->parameters[i]. A configuration that cannot be launched gives one TSIM_INVALID report.
// Concurrent launches are allowed. The caller must free the result.
tsim_result* tsim_launch(const tsim_kernel* kernel, void** arguments, const tsim_config* config);

// Ends the launch that has this `stop`, from another thread, wherever its blocks are; returns
// when no host thread runs one any more.
void tsim_stop(int* stop);

void tsim_free_result(tsim_result* result);

#ifdef __cplusplus
}
#endif
