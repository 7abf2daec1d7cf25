#include "counters.h"

#include <algorithm>

#include "block.h"

namespace tsim {
namespace {

constexpr int MOST_BANKS = 64;
constexpr int TURN_WORDS = 32;
constexpr uint32_t BANK_BYTES = 4;

struct Cost {
  uint64_t taken = 0;
  uint64_t ideal = 0;
};

// Shared memory serves 128 bytes in a turn, one word of a bank. Lanes are served in groups, in
// their order: 32 with four bytes each, fewer with more, so that a group could do with one turn.
// Equal words are read once. Of 64 banks as many words come in a turn, but fewer lanes collide.
Cost bank_transactions(const uint64_t* addresses, uint64_t lanes, int warp_size, int banks,
                uint32_t bytes) {
  const int words_each = std::max(int(bytes / BANK_BYTES), 1);
  const int group = std::max(TURN_WORDS / words_each, 1);
  Cost cost;
  for (int first = 0; first < warp_size; first += group) {
    uint64_t words[TURN_WORDS * 5];
    int count = 0;
    for (int lane = first; lane < std::min(first + group, warp_size); ++lane) {
      if (!(lanes >> lane & 1)) continue;
      const uint64_t last = (addresses[lane] + bytes - 1) / BANK_BYTES;
      for (uint64_t w = addresses[lane] / BANK_BYTES; w <= last; ++w) words[count++] = w;
    }
    if (!count) continue;
    std::sort(words, words + count);
    count = int(std::unique(words, words + count) - words);
    int in_bank[MOST_BANKS] = {};
    int most = 0;
    for (int i = 0; i < count; ++i) most = std::max(most, ++in_bank[words[i] % uint64_t(banks)]);
    cost.taken += uint64_t(most);
    cost.ideal += uint64_t((count + TURN_WORDS - 1) / TURN_WORDS);
  }
  return cost;
}

Cost sectors(const uint64_t* addresses, uint64_t lanes, int warp_size, uint32_t sector_bytes,
             uint32_t bytes) {
  uint64_t touched[64 * 2], distinct[64];
  int count = 0, places = 0;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    distinct[places++] = addresses[lane];
    const uint64_t first = addresses[lane] / sector_bytes;
    const uint64_t last = (addresses[lane] + bytes - 1) / sector_bytes;
    touched[count++] = first;
    if (last != first) touched[count++] = last;
  }
  // Lanes that ask for the same bytes could not do with less than one sector between them.
  std::sort(distinct, distinct + places);
  const uint64_t asked = uint64_t(std::unique(distinct, distinct + places) - distinct) * bytes;
  std::sort(touched, touched + count);
  Cost cost;
  cost.taken = uint64_t(std::unique(touched, touched + count) - touched);
  cost.ideal = (asked + sector_bytes - 1) / sector_bytes;
  return cost;
}

}  // namespace

void Counters::configure(int warps, const tsim_config& config) {
  warp_size_ = int(config.warp_size);
  banks_ = int(config.banks);
  sector_bytes_ = config.sector_bytes;
  warps_.assign(size_t(warps), {});
}

void Counters::count(Block& block, const Thread& thread, uint32_t space, bool is_write,
                     uint64_t address, uint32_t bytes, uint32_t line) {
  const uint64_t key = CountKey{line, uint16_t(bytes), uint8_t(space), is_write}.packed();
  Site& site = warps_[size_t(thread.warp)][key];
  const uint64_t number = site.reached[thread.lane]++;
  while (site.first + site.open.size() <= number) site.open.emplace_back();
  Operation& operation = site.open[size_t(number - site.first)];
  operation.lanes |= 1ull << thread.lane;
  operation.addresses[thread.lane] = address;
  const uint64_t all = block.warps[size_t(thread.warp)].lanes;
  while (!site.open.empty() && site.open.front().lanes == all) {
    fold(key, site.open.front());
    site.open.pop_front();
    ++site.first;
  }
}

void Counters::count(const CountKey& key, const LineCount& cost) {
  LineCount& total = totals_[key.packed()];
  total.requests += cost.requests;
  total.bytes += cost.bytes;
  total.taken += cost.taken;
  total.ideal += cost.ideal;
}

void Counters::flush(Block&) {
  for (auto& warp : warps_) {
    for (auto& [key, site] : warp) {
      for (const Operation& operation : site.open) fold(key, operation);
      site = Site();
    }
  }
}

void Counters::fold(uint64_t packed, const Operation& operation) {
  const CountKey key = CountKey::unpack(packed);
  const uint64_t* addresses = operation.addresses;
  const Cost cost =
      key.space == TSIM_SHARED
          ? bank_transactions(addresses, operation.lanes, warp_size_, banks_, key.bytes)
          : sectors(addresses, operation.lanes, warp_size_, sector_bytes_, key.bytes);
  LineCount& total = totals_[packed];
  ++total.requests;
  total.bytes += uint64_t(__builtin_popcountll(operation.lanes)) * key.bytes;
  total.taken += cost.taken;
  total.ideal += cost.ideal;
}

}  // namespace tsim
