// A HIP runtime that remembers what it was asked to launch: for tests of the host side.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int devices = 2, attributes;
static const char *failing = "", *architecture = "gfx942:sramecc+:xnack-";
static int failure;
static uint64_t module_count, launches, dynamic_shared;
// What a thread asked for last, and the device it works with: as in the runtime, one per thread.
static __thread int current;
static __thread uint64_t last_function, last_grid[3], last_block[3], last_shared, last_stream, launched_on;
static __thread unsigned char kernarg[256];

// The call named `call` fails with `code` from now on; "" none.
void stub_set(int count, const char *call, int code) {
  static char name[64];
  snprintf(name, sizeof name, "%s", call);
  devices = count, failing = name, failure = code;
}
void stub_architecture(const char *name) {
  static char kept[64];
  snprintf(kept, sizeof kept, "%s", name);
  architecture = kept;
}
static __thread int last_error;
// What succeeds leaves the last error alone: it is read, and by that forgotten, with hipGetLastError.
static int fails(const char *call) { return strcmp(call, failing) ? 0 : (last_error = failure); }
int hipGetLastError(void) {
  int code = last_error;
  last_error = 0;
  return code;
}

uint64_t stub_modules(void) { return module_count; }
uint64_t stub_launches(void) { return launches; }
uint64_t stub_dynamic_shared(void) { return dynamic_shared; }
void stub_last(uint64_t *out) {
  out[0] = last_function;
  for (int k = 0; k < 3; ++k) out[1 + k] = last_grid[k], out[4 + k] = last_block[k];
  out[7] = last_shared, out[8] = last_stream, out[9] = launched_on;
}
void stub_kernarg(void *out) { memcpy(out, kernarg, sizeof kernarg); }

int hipInit(unsigned flags) { return fails("hipInit"); }
int hipGetDeviceCount(int *count) {
  *count = devices;
  return devices ? fails("hipGetDeviceCount") : 100; // hipErrorNoDevice
}
int hipGetDevice(int *device) { *device = current; return fails("hipGetDevice"); }
int hipSetDevice(int device) {
  if (device < 0 || device >= devices) return 101; // hipErrorInvalidDevice
  if (fails("hipSetDevice")) return failure;
  current = device;
  return 0;
}
int hipGetDevicePropertiesR0600(char *place, int device) {
  memset(place, 0, 1472);
  strcpy(place, "AMD Instinct MI300X");
  strcpy(place + 1160, architecture);
  return fails("hipGetDeviceProperties");
}
int hipModuleLoadData(void **module, const void *image) {
  if (fails("hipModuleLoadData")) return failure;
  if (memcmp(image, "\177ELF", 4)) return 200; // hipErrorInvalidImage
  *module = (void *)(((uintptr_t)current + 1) << 20 | (0x1000 + module_count++));
  return 0;
}
int hipModuleGetFunction(void **function, void *module, const char *name) {
  if (fails("hipModuleGetFunction")) return failure;
  *function = (void *)(((uintptr_t)module << 8) + strlen(name));
  return 0;
}
int hipFuncSetAttribute(const void *function, int which, int value) {
  if (fails("hipFuncSetAttribute")) return failure;
  if (which == 8) dynamic_shared = value;
  return 0;
}

static uint64_t held;
uint64_t stub_held(void) { return held; } // bytes, of what was allocated and not given back
int hipMallocAsync(void **place, size_t size, void *stream) {
  if (fails("hipMallocAsync")) return failure;
  uint64_t *memory = malloc(size + 16);
  *memory = size, held += size;
  *place = memory + 2;
  return 0;
}
int hipFreeAsync(void *place, void *stream) {
  held -= ((uint64_t *)place)[-2];
  free((uint64_t *)place - 2);
  return 0;
}

// The runtime knows the width of each parameter from the code object; the test says it here.
static int widths[16], parameters;
void stub_widths(const int *bytes, int count) {
  parameters = count;
  for (int k = 0; k < count; ++k) widths[k] = bytes[k];
}
int hipDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 63 ? 5 : 0;
  return 0;
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                       size_t shared) {
  if ((uintptr_t)function >> 28 != (uintptr_t)current + 1) return 400; // hipErrorInvalidHandle
  *blocks = 1024 / threads;
  return 0;
}
static uint64_t together;
uint64_t stub_together(void) { return together; }
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream, void **values,
                          void **extra) {
  if (fails("hipModuleLaunchKernel")) return failure;
  if ((uintptr_t)function >> 28 != (uintptr_t)current + 1) return 400; // hipErrorInvalidHandle
  if (extra) return 1; // hipErrorInvalidValue
  last_function = (uintptr_t)function, launched_on = current;
  last_grid[0] = gx, last_grid[1] = gy, last_grid[2] = gz;
  last_block[0] = bx, last_block[1] = by, last_block[2] = bz;
  last_shared = shared, last_stream = (uintptr_t)stream;
  memset(kernarg, 0xAA, sizeof kernarg);
  for (int k = 0, offset = 0; k < parameters; offset += widths[k++]) {
    offset = (offset + widths[k] - 1) / widths[k] * widths[k];
    memcpy(kernarg + offset, values[k], widths[k]);
  }
  __sync_fetch_and_add(&launches, 1);
  return 0;
}
const char *hipGetErrorName(int code) {
  return code == 100 ? "hipErrorNoDevice" : code == 200 ? "hipErrorInvalidImage" : "hipErrorStub";
}
const char *hipGetErrorString(int code) { return "the stub was told to refuse"; }
int hipModuleLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     void *stream, void **values) {
  __sync_fetch_and_add(&together, 1);
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, values, 0);
}
