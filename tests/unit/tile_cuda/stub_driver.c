// A CUDA driver that remembers what it was asked to launch: for tests of the host side.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
} Config;

typedef struct {
  unsigned id, pad, value[16];
} Attribute;

// What cuTensorMapEncodeTiled was told, in the 128 bytes of a map: the name of a real one says less.
typedef struct {
  uint64_t address, extents[4];
  uint32_t strides[4], boxes[5];
  uint8_t dtype, rank, interleave, swizzle, promotion, fill, steps[5];
} Map;

static int devices = 2, refuse = 0;
static uint64_t launches, module_count, dynamic_shared, large_clusters, encoded;
// What a thread asked for last, and the context it works in: as in the driver, one per thread.
static __thread uint64_t last_function, last_grid[3], last_block[3], last_shared, last_stream;
static __thread uint64_t last_values[16], launched_on;
static __thread Map last_maps[16];
static __thread Attribute last_attributes[8];
static __thread unsigned attribute_count;
static __thread void *current_context;

void stub_set(int count, int error) { devices = count; refuse = error; }
uint64_t stub_launches(void) { return launches; }
uint64_t stub_modules(void) { return module_count; }
uint64_t stub_dynamic_shared(void) { return dynamic_shared; }
void stub_last(uint64_t *out) {
  out[0] = last_function;
  for (int k = 0; k < 3; ++k) out[1 + k] = last_grid[k], out[4 + k] = last_block[k];
  out[7] = last_shared, out[8] = last_stream, out[9] = launched_on;
}
unsigned stub_attributes(Attribute *out) {
  memcpy(out, last_attributes, sizeof last_attributes);
  return attribute_count;
}
void stub_map(int k, void *out) { memcpy(out, &last_maps[k], sizeof(Map)); }
uint64_t stub_encoded(void) { return encoded; }
uint64_t stub_value(int k) { return last_values[k]; }
uint64_t stub_context(void) { return (uintptr_t)current_context; }

static int start, unreadable; // what starting and loading modules are answered with
void stub_old(int starting, int loading) { start = starting, unreadable = loading; }
int cuInit(unsigned flags) { return start; }
int cuDriverGetVersion(int *version) { *version = 11040; return 0; }
int cuDeviceGetCount(int *count) { *count = devices; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 75 ? 8 : which == 76 ? 6 : which == 16 ? 5 : 0;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                size_t shared) {
  if ((uintptr_t)function >> 28 != (uintptr_t)current_context) return 400; // invalid handle
  *blocks = 1024 / threads;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)(uintptr_t)(0x100 + device);
  return 0;
}
int cuCtxSetCurrent(void *context) { current_context = context; return 0; }
int cuCtxGetCurrent(void **context) { *context = current_context; return 0; }
int cuModuleLoadData(void **module, const void *image) {
  if (!current_context) return 201; // CUDA_ERROR_INVALID_CONTEXT
  if (unreadable) return unreadable;
  *module = (void *)(((uintptr_t)current_context << 20) + 0x1000 + module_count++);
  return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = (void *)(((uintptr_t)module << 8) + strlen(name));
  return 0;
}
uint64_t stub_large_clusters(void) { return large_clusters; }
int cuFuncSetAttribute(void *function, int which, int value) {
  if (which == 8) dynamic_shared = value;
  if (which == 14) large_clusters = value;
  return 0;
}
int cuTensorMapEncodeTiled(void *place, int dtype, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int promotion,
                           int fill) {
  // What the comment on this function in cuda.h of CUDA 13.0 asks for, else invalid value.
  static const uint8_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (refuse) return refuse;
  if ((uintptr_t)place % 64 || (uintptr_t)address % 16 || !address) return 1;
  if (dtype < 0 || dtype > 12 || rank < 1 || rank > 5 || (interleave && rank < 3)) return 1;
  if (interleave < 0 || interleave > 2 || swizzle < 0 || swizzle > 3) return 1;
  if (interleave == 2 && ((uintptr_t)address % 32 || swizzle != 1)) return 1;
  if (promotion < 0 || promotion > 3 || fill < 0 || fill > 1 || (fill && dtype < 6)) return 1;
  if (!interleave && box[0] * sizes[dtype] % 16) return 1;
  if (!interleave && swizzle && box[0] * sizes[dtype] > 16u << swizzle) return 1;
  for (unsigned k = 0; k + 1 < rank; ++k) {
    if (strides[k] % (interleave == 2 ? 32 : 16) || strides[k] >> 40) return 1;
  }
  Map map = {(uintptr_t)address};
  for (unsigned k = 0; k < rank; ++k) {
    if (!extents[k] || extents[k] > 1ull << 32 || !box[k] || box[k] > 256) return 1;
    if (!steps[k] || steps[k] > 8) return 1;
    if (k < 4) map.extents[k] = extents[k];
    map.boxes[k] = box[k], map.steps[k] = steps[k];
  }
  for (unsigned k = 0; k + 1 < rank; ++k) {
    map.strides[k] = strides[k];
  }
  map.dtype = dtype, map.rank = rank, map.interleave = interleave, map.swizzle = swizzle;
  map.promotion = promotion, map.fill = fill;
  memcpy(place, &map, sizeof map);
  __sync_fetch_and_add(&encoded, 1);
  return 0;
}

static uint64_t held;
uint64_t stub_held(void) { return held; } // bytes, of what was allocated and not given back
int cuMemAllocAsync(uint64_t *place, size_t size, void *stream) {
  if (refuse) return refuse;
  uint64_t *memory = malloc(size + 256);
  *memory = size, held += size;
  *place = ((uintptr_t)memory + 256) / 256 * 256;
  ((uint64_t **)*place)[-1] = memory;
  return 0;
}
int cuMemFreeAsync(uint64_t place, void *stream) {
  uint64_t *memory = ((uint64_t **)place)[-1];
  held -= *memory;
  free(memory);
  return 0;
}
int cuGetErrorString(int code, const char **text) { *text = "the stub was told to refuse"; return 0; }

// Parameters are 4 or 8 bytes wide, maps 128; the test says which with stub_widths.
static int widths[16] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, parameters;
void stub_widths(const int *bytes, int count) {
  parameters = count;
  for (int k = 0; k < count; ++k) widths[k] = bytes[k];
}
int cuLaunchKernelEx(const Config *config, void *function, void **values, void **extra) {
  if (refuse) return refuse;
  if (!current_context) return 201;                                       // invalid context
  if ((uintptr_t)function >> 28 != (uintptr_t)current_context) return 400; // invalid handle
  launched_on = (uintptr_t)current_context - 0x100;
  __sync_fetch_and_add(&launches, 1);
  last_function = (uintptr_t)function;
  for (int k = 0; k < 3; ++k) last_grid[k] = config->grid[k], last_block[k] = config->block[k];
  last_shared = config->shared_bytes, last_stream = (uintptr_t)config->stream;
  attribute_count = config->attribute_count;
  memcpy(last_attributes, config->attributes, attribute_count * sizeof(Attribute));
  for (int k = 0; k < parameters; ++k) {
    last_values[k] = 0;
    if (widths[k] == 128) {
      if ((uintptr_t)values[k] % 64) return 1;
      memcpy(&last_maps[k], values[k], sizeof(Map));
      continue;
    }
    memcpy(&last_values[k], values[k], widths[k]);
  }
  return 0;
}
