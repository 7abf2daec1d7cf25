// What printed kernels include: picks the device header of the toolchain that compiles them.
// All device headers give the same functions one meaning.
#pragma once

#if defined(TILE_SIM)
#include "tile_sim.h"
#elif defined(__HIP__) || defined(__HIPCC_RTC__)
#include "tile_hip.h"
#else
#include "tile_cuda.h"
#endif

// Values without a literal.
#ifndef TILE_INFINITY
#define TILE_INFINITY __builtin_inff()
#define TILE_NAN __builtin_nanf("")
#endif
