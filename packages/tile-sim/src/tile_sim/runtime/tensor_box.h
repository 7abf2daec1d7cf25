// Boxes of tensor maps: which bytes of global memory they are, and where they lie in shared memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi.h"

namespace tsim {

constexpr uint32_t BULK_ALIGNMENT = 16;   // of addresses and sizes of bulk copies of rows
constexpr uint32_t BOX_ALIGNMENT = 128;   // of boxes in shared memory

// A box at some coordinates.
struct Box {
  const tsim_tensor_map* map;
  int32_t at[TSIM_MAX_RANK];
};

inline uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

inline uint32_t row_elements(const tsim_tensor_map& map) {
  return ceil_div(map.box[0], map.element_strides[0]);
}
inline uint32_t row_bytes(const tsim_tensor_map& map) {
  return row_elements(map) * map.element_bytes;
}
inline uint32_t box_rows(const tsim_tensor_map& map) {
  uint32_t rows = 1;
  for (uint32_t d = 1; d < map.rank; ++d) rows *= ceil_div(map.box[d], map.element_strides[d]);
  return rows;
}
inline uint32_t box_bytes(const tsim_tensor_map& map) { return box_rows(map) * row_bytes(map); }

// Where the 16 bytes at byte `at` of the arena go: the pattern depends on the address alone.
inline uint32_t swizzled(uint32_t at, uint32_t swizzle) {
  switch (swizzle) {
    case 128:
      return at ^ (at >> 3 & 0x70);
    case 64:
      return at ^ (at >> 3 & 0x30);
    case 32:
      return at ^ (at >> 3 & 0x10);
    default:
      return at;
  }
}

// A row of a box: elements `first` to `end` of it lie in the tensor, from `global` on.
struct BoxRow {
  uint32_t number;
  uint32_t first;
  uint32_t end;
  unsigned char* global;
};

// Calls visit(row) for each row of a box, in the order of shared memory.
template <class Visit>
inline void for_each_row(const Box& box, Visit visit) {
  const tsim_tensor_map& map = *box.map;
  const uint32_t rows = box_rows(map), elements = row_elements(map);
  const int64_t step = map.element_strides[0];
  // Elements at[0] + i * step, of which those in 0 .. extents[0] - 1 are inside.
  const int64_t before = box.at[0] < 0 ? (-int64_t(box.at[0]) + step - 1) / step : 0;
  const int64_t left = map.extents[0] - box.at[0];
  const int64_t behind = left > 0 ? (left + step - 1) / step : 0;
  const uint32_t first = uint32_t(std::min<int64_t>(before, elements));
  const uint32_t end = std::max(first, uint32_t(std::min<int64_t>(behind, elements)));
  for (uint32_t number = 0; number < rows; ++number) {
    BoxRow row{number, first, end, static_cast<unsigned char*>(map.data)};
    uint32_t rest = number;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const uint32_t count = ceil_div(map.box[d], map.element_strides[d]);
      const int64_t i = box.at[d] + int64_t(rest % count) * map.element_strides[d];
      rest /= count;
      if (i < 0 || i >= map.extents[d]) row.first = row.end = 0;
      row.global += i * map.strides[d];
    }
    row.global += (box.at[0] + int64_t(row.first) * step) * map.strides[0];
    visit(row);
  }
}

// Moves a box between global memory and byte `offset` of an arena; `reduction` as in
// tsim_tensor_store.
void load_box(const Box& box, unsigned char* arena, uint32_t offset);
void store_box(const Box& box, const unsigned char* arena, uint32_t offset, int reduction);

}  // namespace tsim
