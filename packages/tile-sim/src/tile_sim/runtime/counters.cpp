#include "counters.h"

#include <algorithm>

#include "block.h"

namespace tsim {
namespace {

constexpr int BANKS = 32;
constexpr uint32_t BANK_BYTES = 4;
constexpr uint32_t TURN_BYTES = BANKS * BANK_BYTES;
constexpr uint32_t SECTOR_BYTES = 32;

struct Cost {
  uint64_t taken = 0;
  uint64_t ideal = 0;
};

// Shared memory serves 128 bytes in a turn, one word of each bank. Lanes that ask for more than
// four bytes are served in groups that could fill a turn; equal words are read once.
Cost bank_turns(const uint64_t* addresses, uint64_t lanes, int warp_size, uint32_t bytes) {
  const int group = bytes <= BANK_BYTES ? 32 : std::max<int>(1, int(TURN_BYTES / bytes));
  Cost cost;
  for (int first = 0; first < warp_size; first += group) {
    uint64_t words[64 * 4];
    int count = 0;
    for (int lane = first; lane < first + group; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      const uint64_t last = (addresses[lane] + bytes - 1) / BANK_BYTES;
      for (uint64_t w = addresses[lane] / BANK_BYTES; w <= last; ++w) words[count++] = w;
    }
    if (!count) continue;
    std::sort(words, words + count);
    count = int(std::unique(words, words + count) - words);
    int in_bank[BANKS] = {};
    int most = 0;
    for (int i = 0; i < count; ++i) most = std::max(most, ++in_bank[words[i] % BANKS]);
    cost.taken += uint64_t(most);
    cost.ideal += uint64_t((count + BANKS - 1) / BANKS);
  }
  return cost;
}

Cost sectors(const uint64_t* addresses, uint64_t lanes, int warp_size, uint32_t bytes) {
  uint64_t touched[64 * 2];
  int count = 0;
  uint64_t asked = 0;
  std::vector<uint64_t> distinct;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    distinct.push_back(addresses[lane]);
    const uint64_t first = addresses[lane] / SECTOR_BYTES;
    const uint64_t last = (addresses[lane] + bytes - 1) / SECTOR_BYTES;
    touched[count++] = first;
    if (last != first) touched[count++] = last;
  }
  // Lanes that ask for the same bytes could not do with less than one sector between them.
  std::sort(distinct.begin(), distinct.end());
  asked = uint64_t(std::unique(distinct.begin(), distinct.end()) - distinct.begin()) * bytes;
  std::sort(touched, touched + count);
  Cost cost;
  cost.taken = uint64_t(std::unique(touched, touched + count) - touched);
  cost.ideal = (asked + SECTOR_BYTES - 1) / SECTOR_BYTES;
  return cost;
}

}  // namespace

void Counters::configure(int warps, int warp_size) {
  warp_size_ = warp_size;
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
  const Cost cost = key.space == TSIM_SHARED
                        ? bank_turns(operation.addresses, operation.lanes, warp_size_, key.bytes)
                        : sectors(operation.addresses, operation.lanes, warp_size_, key.bytes);
  LineCount& total = totals_[packed];
  ++total.requests;
  total.bytes += uint64_t(__builtin_popcountll(operation.lanes)) * key.bytes;
  total.taken += cost.taken;
  total.ideal += cost.ideal;
}

}  // namespace tsim
