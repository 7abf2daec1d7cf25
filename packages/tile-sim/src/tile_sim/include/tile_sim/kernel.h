// Kernels: where their threads are, and how the runtime calls them.
#pragma once
#include "abi.h"
#include "tile_sim/tma.h"

// A kernel whose blocks have `threads` threads. The entry is exported by TILE_EXPORT.
#define TILE_KERNEL(threads, blocks) extern "C"
// How many blocks run together: the launch knows it.
#define TILE_CLUSTER(x, y, z)
#define TILE_EXPORT(kernel)                                                             \
  extern "C" __attribute__((visibility("default"))) const tsim_kernel tsim_kernel_##kernel; \
  const tsim_kernel tsim_kernel_##kernel = tile::kernel_entry<&kernel>::describe(#kernel);

namespace tile {

template <int (*get)(int axis), int AXIS>
struct coordinate {
  TILE_HOST operator int() const { return get(AXIS); }
};
template <int (*get)(int axis)>
struct coordinates {
  coordinate<get, 0> x;
  coordinate<get, 1> y;
  coordinate<get, 2> z;
};

// What the runtime passes for a parameter of type P.
template <class P>
struct parameter {
  static constexpr tsim_parameter facts = {TSIM_SCALAR, sizeof(P)};
  TILE_HOST static P read(void* argument) { return *(P*)argument; }
};
template <class T>
struct parameter<gptr<T>> {
  static constexpr bool is_read_only = !same<T, typename without_const<T>::type>;
  static constexpr tsim_parameter facts = {is_read_only ? TSIM_READ_ONLY : TSIM_READ_WRITE,
                                           sizeof(T)};
  TILE_HOST static gptr<T> read(void* argument) {
    const tsim_buffer* buffer = (const tsim_buffer*)argument;
    return tsim_global{(u8*)buffer->data, buffer};
  }
};

template <>
struct parameter<tensor_map> {
  static constexpr tsim_parameter facts = {TSIM_TENSOR_MAP, sizeof(tsim_tensor_map)};
  TILE_HOST static tensor_map read(void* argument) { return {(const tsim_tensor_map*)argument}; }
};

template <int... I>
struct numbers {};
template <int N, int... I>
struct count_to : count_to<N - 1, N - 1, I...> {};
template <int... I>
struct count_to<0, I...> {
  using type = numbers<I...>;
};

template <auto KERNEL>
struct kernel_entry;
template <class... P, void (*KERNEL)(P...)>
struct kernel_entry<KERNEL> {
  static constexpr tsim_parameter parameters[sizeof...(P) + 1] = {parameter<P>::facts..., {0, 0}};
  template <int... I>
  static void call(void** arguments, numbers<I...>) {
    KERNEL(parameter<P>::read(arguments[I])...);
  }
  static void run(void** arguments) { call(arguments, typename count_to<sizeof...(P)>::type{}); }
  static constexpr tsim_kernel describe(const char* name) {
    return {&run, sizeof...(P), TILE_WARP_SIZE, parameters, name};
  }
};

}  // namespace tile

constexpr tile::coordinates<tsim_thread_index> threadIdx{};
constexpr tile::coordinates<tsim_block_index> blockIdx{};
constexpr tile::coordinates<tsim_block_dim> blockDim{};
constexpr tile::coordinates<tsim_grid_dim> gridDim{};
