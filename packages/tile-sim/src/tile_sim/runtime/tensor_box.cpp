#include "tensor_box.h"

#include <cstring>

#include "atomic.h"

namespace tsim {
namespace {

constexpr uint32_t SWIZZLED = 16;
constexpr uint32_t MOST_ROW_BYTES = 256 * 8;

}  // namespace

void load_box(const Box& box, unsigned char* arena, uint32_t offset) {
  const tsim_tensor_map& map = *box.map;
  const uint32_t bytes = row_bytes(map), size = map.element_bytes;
  for_each_row(box, [&](const BoxRow& row) {
    unsigned char elements[MOST_ROW_BYTES];
    const uint32_t inside = (row.end - row.first) * size;
    if (inside != bytes) std::memset(elements, map.fills_nan ? 0xff : 0, bytes);
    if (map.element_strides[0] == 1) {
      std::memcpy(elements + row.first * size, row.global, inside);
    } else {
      const unsigned char* from = row.global;
      for (uint32_t i = row.first; i < row.end; ++i, from += map.element_strides[0] * size) {
        std::memcpy(elements + i * size, from, size);
      }
    }
    for (uint32_t chunk = 0; chunk < bytes; chunk += SWIZZLED) {
      const uint32_t at = swizzled(offset + row.number * bytes + chunk, map.swizzle);
      std::memcpy(arena + at, elements + chunk, SWIZZLED);
    }
  });
}

void store_box(const Box& box, const unsigned char* arena, uint32_t offset, int reduction) {
  const tsim_tensor_map& map = *box.map;
  const uint32_t bytes = row_bytes(map), size = map.element_bytes;
  for_each_row(box, [&](const BoxRow& row) {
    unsigned char elements[MOST_ROW_BYTES];
    for (uint32_t chunk = 0; chunk < bytes; chunk += SWIZZLED) {
      const uint32_t at = swizzled(offset + row.number * bytes + chunk, map.swizzle);
      std::memcpy(elements + chunk, arena + at, SWIZZLED);
    }
    unsigned char* to = row.global;
    for (uint32_t i = row.first; i < row.end; ++i, to += map.element_strides[0] * size) {
      if (reduction >= 0) update_atomically(reduction, int(map.type), to, elements + i * size, 1);
      else std::memcpy(to, elements + i * size, size);
    }
  });
}

}  // namespace tsim
