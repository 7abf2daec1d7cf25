// The device functions of lowered tile kernels on NVIDIA GPUs, sm_70 and newer.
//
// Compiles under NVRTC without any other header than cuda_fp16.h and cuda_bf16.h, and under nvcc.
// Instructions that an architecture lacks are emulated where that makes sense, and refused when
// they are used where it does not.
#pragma once

#include "tile_cuda/types.h"
#include "tile_cuda/bits.h"
#include "tile_cuda/narrow.h"
#include "tile_cuda/cast.h"
#include "tile_cuda/memory.h"
#include "tile_cuda/async_copy.h"
#include "tile_cuda/sync.h"
#include "tile_cuda/asynchronous.h"
#include "tile_cuda/matrix.h"
#include "tile_cuda/arithmetic.h"
#include "tile_cuda/math.h"
#include "tile_cuda/rounded.h"
#include "tile_cuda/warp.h"
#include "tile_cuda/atomic.h"
#include "tile_cuda/dequant.h"
#include "tile_cuda/print.h"
