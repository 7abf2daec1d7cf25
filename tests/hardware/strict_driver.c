// A CUDA driver that runs nothing and takes nothing amiss but what the manual forbids.
//
// Its prototypes, structures and numbers are those of NVIDIA's cuda.h: a launcher that disagrees
// with the header is refused here as it would be by a Hopper GPU. What is refused is said by
// cuGetErrorString. Rules: CUDA Driver API 13.0, cuTensorMapEncodeTiled, cuLaunchKernelEx,
// cuFuncSetAttribute; CUDA C++ guide, technical specifications of compute capability 9.0.
#include <cuda.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 132, MOST_THREADS = 2048, ALL_SHARED = 233472 };
enum { MOST_SHARED = 232448, DEFAULT_SHARED = 49152, MOST_PARAMETERS = 64, KPARAM_INFO = 0x17 };
static const uint64_t MAP = 0x70616d20656c6974; // what an encoded map begins with

typedef struct {
  const unsigned char *image;
} Module;

typedef struct {
  int count, most_dynamic, large_clusters;
  uint32_t sizes[MOST_PARAMETERS];
} Function;

static __thread CUcontext current;
static __thread char reason[256] = "the strict driver refused it";
static int context_of_device;

__attribute__((format(printf, 1, 2))) static CUresult refuse(const char *text, ...) {
  va_list rest;
  va_start(rest, text);
  vsnprintf(reason, sizeof reason, text, rest);
  va_end(rest);
  return CUDA_ERROR_INVALID_VALUE;
}
#define REFUSE_IF(condition, ...)             \
  do {                                        \
    if (condition) return refuse(__VA_ARGS__); \
  } while (0)

CUresult CUDAAPI cuGetErrorString(CUresult code, const char **text) {
  *text = code == CUDA_ERROR_INVALID_CONTEXT ? "no context is current" : reason;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned flags) { return flags ? refuse("flags") : CUDA_SUCCESS; }
CUresult CUDAAPI cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int number) {
  REFUSE_IF(number, "there is one device");
  return *device = 0, CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
  REFUSE_IF(device, "there is one device");
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = UNITS; break;
    default: return refuse("attribute %d of a device", which);
  }
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  REFUSE_IF(device, "there is one device");
  return *context = (CUcontext)&context_of_device, CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) { return *context = current, CUDA_SUCCESS; }

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  const Elf64_Ehdr *header = image;
  REFUSE_IF(memcmp(header->e_ident, ELFMAG, SELFMAG), "the image is no ELF file");
  REFUSE_IF(header->e_machine != EM_CUDA, "machine %d", header->e_machine);
  size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  Module *made = malloc(sizeof *made);
  unsigned char *copy = malloc(size); // the caller may free its own
  memcpy(copy, image, size);
  made->image = copy;
  return *module = (CUmodule)made, CUDA_SUCCESS;
}

// Read the sizes of parameters from the notes of a kernel.
static void read_notes(Function *function, const unsigned char *notes, size_t size) {
  for (size_t at = 0; at + 4 <= size;) {
    unsigned char form = notes[at], kind = notes[at + 1];
    uint16_t length;
    memcpy(&length, notes + at + 2, sizeof length);
    at += 4;
    if (form != 4) continue;
    if (kind == KPARAM_INFO) {
      uint16_t ordinal;
      uint32_t flags;
      memcpy(&ordinal, notes + at + 4, sizeof ordinal), memcpy(&flags, notes + at + 8, sizeof flags);
      if (ordinal < MOST_PARAMETERS) function->sizes[ordinal] = flags >> 18, ++function->count;
    }
    at += length;
  }
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *found, CUmodule module, const char *name) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  const unsigned char *image = ((Module *)module)->image;
  const Elf64_Ehdr *header = (const void *)image;
  const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
  const char *names = (const char *)image + sections[header->e_shstrndx].sh_offset;
  for (int k = 0; k < header->e_shnum; ++k) {
    const char *section = names + sections[k].sh_name;
    if (strncmp(section, ".nv.info.", 9) || strcmp(section + 9, name)) continue;
    Function *made = calloc(1, sizeof *made);
    made->most_dynamic = DEFAULT_SHARED;
    read_notes(made, image + sections[k].sh_offset, sections[k].sh_size);
    return *found = (CUfunction)made, CUDA_SUCCESS;
  }
  return refuse("no kernel %s", name);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
  Function *function = (Function *)handle;
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      REFUSE_IF(value < 0 || value > MOST_SHARED, "%d bytes of shared memory", value);
      return function->most_dynamic = value, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return function->large_clusters = value, CUDA_SUCCESS;
    default: return refuse("attribute %d of a function", which);
  }
}

static int bytes_of(CUtensorMapDataType type) {
  static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return (unsigned)type < sizeof sizes / sizeof *sizes ? sizes[type] : 0;
}

static int is_float(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  uint64_t granule = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  int size = bytes_of(type);
  REFUSE_IF((uintptr_t)map % 64, "a map at %p", (void *)map);
  REFUSE_IF(!size, "type %d of elements", type);
  REFUSE_IF(rank < 1 || rank > 5, "rank %u", rank);
  REFUSE_IF(interleave && rank < 3, "interleaving of rank %u", rank);
  REFUSE_IF((unsigned)interleave > CU_TENSOR_MAP_INTERLEAVE_32B, "interleaving %d", interleave);
  REFUSE_IF(!address || (uintptr_t)address % granule, "a tensor at %p", address);
  for (unsigned k = 0; k < rank; ++k) {
    REFUSE_IF(!extents[k] || extents[k] > 1ull << 32, "extent %u of a tensor", k);
    REFUSE_IF(!box[k] || box[k] > 256, "extent %u of a box: %u", k, box[k]);
    REFUSE_IF(!steps[k] || steps[k] > 8, "every %u elements along %u", steps[k], k);
  }
  for (unsigned k = 0; k + 1 < rank; ++k) {
    REFUSE_IF(strides[k] % granule || strides[k] >= 1ull << 40, "stride %u: %llu bytes", k,
              (unsigned long long)strides[k]);
  }
  uint64_t row = (uint64_t)box[0] * size;
  REFUSE_IF(!interleave && row % 16, "rows of boxes of %llu bytes", (unsigned long long)row);
  static const uint64_t spans[] = {1 << 30, 32, 64, 128};
  REFUSE_IF((unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B, "swizzle %d", swizzle);
  REFUSE_IF(!interleave && row > spans[swizzle], "%llu bytes in swizzle %d",
            (unsigned long long)row, swizzle);
  REFUSE_IF(interleave == CU_TENSOR_MAP_INTERLEAVE_32B && swizzle != CU_TENSOR_MAP_SWIZZLE_32B,
            "swizzle %d of channels", swizzle);
  REFUSE_IF((unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B, "promotion %d", promotion);
  REFUSE_IF((unsigned)fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, "fill %d", fill);
  REFUSE_IF(fill && !is_float(type), "NaN as integers");
  map->opaque[0] = MAP;
  return CUDA_SUCCESS;
}

static CUresult check_cluster(const CUlaunchConfig *told, const Function *function,
                              CUlaunchAttributeValue value) {
  unsigned x = value.clusterDim.x, y = value.clusterDim.y, z = value.clusterDim.z;
  REFUSE_IF(!x || !y || !z, "a cluster of %u x %u x %u blocks", x, y, z);
  REFUSE_IF(x * y * z > (function->large_clusters ? 16 : 8), "%u blocks in a cluster", x * y * z);
  REFUSE_IF(told->gridDimX % x || told->gridDimY % y || told->gridDimZ % z,
            "a grid that is not made of clusters");
  return CUDA_SUCCESS;
}

// At most: registers are not counted.
static int resident(unsigned threads, size_t shared) {
  int by_threads = MOST_THREADS / (int)threads, by_shared = ALL_SHARED / (int)(shared + 1024);
  return by_threads < by_shared ? by_threads : by_shared;
}
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle,
                                                             int threads, size_t shared) {
  const Function *function = (const Function *)handle;
  REFUSE_IF(threads < 1 || threads > 1024, "%d threads", threads);
  REFUSE_IF(shared > (size_t)function->most_dynamic, "%zu bytes of shared memory", shared);
  return *blocks = resident((unsigned)threads, shared), CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *told, CUfunction handle, void **values,
                                  void **extra) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  const Function *function = (const Function *)handle;
  REFUSE_IF(extra, "parameters twice");
  REFUSE_IF(!told->gridDimX || told->gridDimX > INT32_MAX, "%u blocks along x", told->gridDimX);
  REFUSE_IF(!told->gridDimY || told->gridDimY > 65535, "%u blocks along y", told->gridDimY);
  REFUSE_IF(!told->gridDimZ || told->gridDimZ > 65535, "%u blocks along z", told->gridDimZ);
  unsigned threads = told->blockDimX * told->blockDimY * told->blockDimZ;
  REFUSE_IF(!threads || threads > 1024 || told->blockDimX > 1024 || told->blockDimY > 1024 ||
                told->blockDimZ > 64,
            "%u x %u x %u threads", told->blockDimX, told->blockDimY, told->blockDimZ);
  REFUSE_IF(told->sharedMemBytes > (unsigned)function->most_dynamic,
            "%u bytes of shared memory, %d are allowed", told->sharedMemBytes,
            function->most_dynamic);
  REFUSE_IF(told->numAttrs && !told->attrs, "no attributes");
  for (unsigned k = 0; k < told->numAttrs; ++k) {
    CUlaunchAttribute attribute = told->attrs[k];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      CUresult code = check_cluster(told, function, attribute.value);
      if (code) return code;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      REFUSE_IF(attribute.value.programmaticStreamSerializationAllowed != 1, "an attribute of 0");
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      REFUSE_IF(attribute.value.cooperative != 1, "an attribute of 0");
      uint64_t blocks = (uint64_t)told->gridDimX * told->gridDimY * told->gridDimZ;
      REFUSE_IF(blocks > (uint64_t)resident(threads, told->sharedMemBytes) * UNITS,
                "%lu blocks do not run at a time", (unsigned long)blocks);
    } else {
      return refuse("attribute %d of a launch", attribute.id);
    }
  }
  for (int k = 0; k < function->count; ++k) {
    REFUSE_IF(!values[k], "parameter %d is nowhere", k);
    if (function->sizes[k] != sizeof(CUtensorMap)) continue;
    REFUSE_IF((uintptr_t)values[k] % 64, "parameter %d, a map, is at %p", k, values[k]);
    REFUSE_IF(((CUtensorMap *)values[k])->opaque[0] != MAP, "parameter %d is no map", k);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *place, size_t size, CUstream stream) {
  (void)stream;
  REFUSE_IF(!size, "no memory at all");
  return *place = (CUdeviceptr)aligned_alloc(256, (size + 255) / 256 * 256), CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr place, CUstream stream) {
  (void)stream;
  return free((void *)place), CUDA_SUCCESS;
}
