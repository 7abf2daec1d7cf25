// The device functions of lowered tile kernels on AMD GPUs with matrix cores: gfx90a and newer.
//
// Compiles as HIP by a bare clang, without any other header and without device libraries, under
// hipcc and under hiprtc. What an architecture lacks is emulated where that makes sense, and
// refused when it is used where it does not. Memory is read as several element types: compile
// with -fno-strict-aliasing.
#pragma once

#include "tile_hip/types.h"
#include "tile_hip/bits.h"
#include "tile_hip/narrow.h"
#include "tile_hip/cast.h"
#include "tile_hip/memory.h"
#include "tile_hip/async_copy.h"
#include "tile_hip/sync.h"
#include "tile_hip/asynchronous.h"
#include "tile_hip/matrix.h"
#include "tile_hip/arithmetic.h"
#include "tile_hip/math.h"
#include "tile_hip/rounded.h"
#include "tile_hip/warp.h"
#include "tile_hip/atomic.h"
#include "tile_hip/dequant.h"
#include "tile_hip/print.h"
#include "tile_hip/c_functions.h"
