#include "uniform.h"

#include "block.h"
#include "tile_sim/device_abi.h"

namespace tsim {

int UniformValues::note(uint32_t line, int lane, uint64_t value) {
  Site* site = nullptr;
  for (Site& known : sites_) {
    if (known.line == line) site = &known;
  }
  if (!site) {
    sites_.emplace_back();
    site = &sites_.back();
    site->line = line;
  }
  const uint32_t number = site->reached[lane]++;
  if (number == site->firsts.size()) {
    site->firsts.push_back({value, lane});
    return -1;
  }
  const First& first = site->firsts[number];
  return first.value == value ? -1 : first.lane;
}

}  // namespace tsim

using namespace tsim;

extern "C" void tsim_uniform(unsigned long long value, unsigned line) {
  Block& block = *current_block;
  const Thread& me = *current_thread;
  const int other = block.warps[size_t(me.warp)].uniforms.note(line, me.lane, value);
  if (other < 0) return;
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report(finding, format("lanes of one warp have different values where one is expected: thread %d "
                         "and thread %d",
                         me.id, me.warp * block.warp_size + other));
}
