// Matrix fragments of a warp: `ldmatrix`, `stmatrix` and `mma`.
//
// Fragments are registers in the order of the PTX manual ("Matrix fragments for mma"), elements
// of one 32-bit register side by side. `mma_<shape>(d, a, b)` adds a @ b to d, a by rows and b
// by columns; the element types choose the instruction.
#pragma once
#include "tile_cuda/matrix_load.h"
#include "tile_cuda/mma_float.h"
#include "tile_cuda/mma_integer.h"
#include "tile_cuda/mma_narrow.h"
#include "tile_cuda/mma_scaled.h"
