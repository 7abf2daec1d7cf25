// What runs while the threads go on: copies straight to shared memory.
#pragma once
#include "tile_hip/lacking.h"
#include "tile_hip/lds_load.h"
