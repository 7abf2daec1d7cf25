// The places of a thread in its block and of a block in the grid, and how many there are: as AMD's
// own headers name them, which a clang alone has not.
#pragma once

namespace tile {

#define TILE_PLACES(NAME, X, Y, Z)                                     \
  struct NAME##_x { TILE_DEVICE operator unsigned() const { return X; } };  \
  struct NAME##_y { TILE_DEVICE operator unsigned() const { return Y; } };  \
  struct NAME##_z { TILE_DEVICE operator unsigned() const { return Z; } };  \
  struct NAME##s { NAME##_x x; NAME##_y y; NAME##_z z; };
#define TILE_PLACES_OF(NAME, WHAT)                                                     \
  TILE_PLACES(NAME, __builtin_amdgcn_##WHAT##_x(), __builtin_amdgcn_##WHAT##_y(),      \
              __builtin_amdgcn_##WHAT##_z())
TILE_PLACES_OF(thread_place, workitem_id)
TILE_PLACES_OF(block_place, workgroup_id)
TILE_PLACES_OF(block_size, workgroup_size)
TILE_PLACES_OF(grid_thread, grid_size)
TILE_PLACES(grid_size, grid_thread_x() / block_size_x(), grid_thread_y() / block_size_y(),
            grid_thread_z() / block_size_z())
#undef TILE_PLACES_OF
#undef TILE_PLACES

}  // namespace tile

#define threadIdx (tile::thread_places{})
#define blockIdx (tile::block_places{})
#define blockDim (tile::block_sizes{})
#define gridDim (tile::grid_sizes{})
