// Atomic operations of engines.
#pragma once

namespace tsim {

// Combines `count` elements in memory with `values`; nothing happens for types that have no such
// operation, which `has_atomics` tells.
void update_atomically(int operation, int type, unsigned char* memory, const void* values,
                       int count);
bool has_atomics(int type);

}  // namespace tsim
