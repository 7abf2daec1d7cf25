// Barriers in memory, copies of tensors, products of warpgroups and clusters, where they exist.
#pragma once
#include "tile_cuda/lacking.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#include "tile_cuda/mbarrier.h"
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#include "tile_cuda/cluster.h"
#include "tile_cuda/tma.h"
#endif
#ifndef TILE_TENSOR_MEMORY_LACKS
#include "tile_cuda/tcgen05.h"
#endif
#ifndef TILE_REGISTERS_STAY
#include "tile_cuda/registers.h"
#endif
#ifndef TILE_PRODUCTS_LACK
#include "tile_cuda/wgmma.h"
#endif
