#include "cluster.h"

namespace tsim {

Block& reach_other(Block& block, Thread&, const tsim_shared& place, uint32_t) {
  return block.cluster->owner_of(place.address);
}

}  // namespace tsim
