// The device functions of lowered tile kernels, for the emulator: any machine with a C++ compiler.
//
// Thin on purpose, since every kernel is compiled with it: no standard headers, and whatever is not
// a line or two of C++ is a call into the runtime library, which is compiled once. Pointers and
// registers are checked types, so that each access tells the runtime what it touches and from
// which line of the source.
#pragma once

#include "tile_sim/types.h"
#include "tile_sim/device_abi.h"
#include "tile_sim/registers.h"
#include "tile_sim/pointers.h"
#include "tile_sim/narrow.h"
#include "tile_sim/cast.h"
#include "tile_sim/memory.h"
#include "tile_sim/async_copy.h"
#include "tile_sim/lds_load.h"
#include "tile_sim/sync.h"
#include "tile_sim/matrix.h"
#include "tile_sim/scaled_matrix.h"
#include "tile_sim/mfma.h"
#include "tile_sim/mbarrier.h"
#include "tile_sim/tma.h"
#include "tile_sim/wgmma.h"
#include "tile_sim/tensor_memory.h"
#include "tile_sim/cluster.h"
#include "tile_sim/arithmetic.h"
#include "tile_sim/math.h"
#include "tile_sim/rounded.h"
#include "tile_sim/warp.h"
#include "tile_sim/atomic.h"
#include "tile_sim/dequant.h"
#include "tile_sim/print.h"
#include "tile_sim/kernel.h"
