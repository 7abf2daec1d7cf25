// Matrix products of a wave.
#pragma once
#include "tile_hip/mfma.h"
#include "tile_hip/dot.h"
