#include "flags.h"

#include "block.h"
#include "tile_sim/device_abi.h"

namespace tsim {

void Flags::fence(Clock& clock, int who) {
  Fenced& mine = threads_[who];
  clock.acquire(who, mine.seen.sum);
  clock.forget(mine.seen);
  clock.forget(mine.released);
  clock.release(who, mine.released);
}

void Flags::update(Clock& clock, int who, uintptr_t word, bool reads, bool writes) {
  Fenced& mine = threads_[who];
  Release& left = words_[word];
  if (reads && left.sum) clock.add(mine.seen, left.sum);
  if (writes && !reads) clock.forget(left);
  if (writes && mine.released.sum) clock.add(left, mine.released.sum);
}

}  // namespace tsim

using namespace tsim;

extern "C" void tsim_fence(void) {
  Block& block = *current_block;
  if (!block.config->cooperative || !block.checks_for(TSIM_CHECK_RACE)) return;
  block.cluster->flags.fence(block.clock, current_thread->who);
}
