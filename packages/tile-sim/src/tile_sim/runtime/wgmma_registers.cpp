// What threads lend to products that are under way: sums and factors in registers.
#include "wgmma.h"

#include <cstring>

#include "block.h"
#include "registers.h"

namespace tsim {
namespace {

Finding register_finding(uint32_t kind, const tsim_registers& r, uint32_t line) {
  Finding finding;
  finding.kind = kind;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(r.offset / r.element_bytes));
  finding.buffer_bytes = uint64_t(r.bytes / r.element_bytes);
  return finding;
}

// The accumulator of a thread that lies in these registers and is being added to.
Issued::Accumulator* find_accumulator(Thread& me, const tsim_registers& d, uint32_t bytes) {
  for (Issued::Accumulator& a : me.issued.accumulators) {
    if (a.registers.values == d.values && a.registers.offset == d.offset && a.bytes == bytes) {
      return &a;
    }
  }
  return nullptr;
}

// What the thread has written there is behind a fence now. Registers are words of four bytes.
void mark_fenced(unsigned char* flags, uint32_t bytes) {
  static_assert((TSIM_WRITTEN ^ TSIM_FENCED) == 1, "a fence clears one bit");
  uint32_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, flags + i, 8);
    word &= 0xfefefefefefefefeull;
    std::memcpy(flags + i, &word, 8);
  }
  for (; i < bytes; ++i) flags[i] &= 0xfe;
}

// From here on fences know of these registers. Returns whether they did before.
bool make_known(Thread& me, const tsim_registers& r, uint32_t bytes) {
  for (const Issued::Range& range : me.issued.known) {
    if (range.flags == r.written + r.offset && range.bytes == bytes) return true;
  }
  r.written[r.bytes] = 1;
  me.issued.known.push_back({r.written + r.offset, bytes});
  return false;
}

// Registers that the thread has written need a fence before a product uses them.
void check_register_fence(Thread& me, const tsim_registers& r, uint32_t bytes, uint32_t line) {
  const bool was_known = make_known(me, r, bytes);
  const unsigned char* flags = r.written + r.offset;
  uint32_t at = 0;
  while (at < bytes && flags[at] != TSIM_WRITTEN) ++at;
  if (at == bytes) return;
  if (!was_known && me.issued.has_fenced) {
    // Written before or behind the fence: nobody watched yet. From now on it counts.
    mark_fenced(r.written + r.offset, bytes);
    return;
  }
  if (!current_block->checks_for(TSIM_CHECK_RACE)) return;
  tsim_registers first = r;
  first.offset += int(at);
  report(register_finding(TSIM_MISSING_FENCE, first, line),
         format("wgmma uses register element %d, which the thread has written since its latest "
                "wgmma_fence",
                first.offset / r.element_bytes));
}

// The registers of a product's sums become the engine's.
void hand_over(const tsim_registers& d, uint32_t bytes) {
  std::memset(d.values + d.offset, 0xff, bytes);
  std::memset(d.written + d.offset, TSIM_SUMMED, bytes);
}

bool contains(const tsim_registers& r, uint32_t bytes, const unsigned char* value) {
  return r.values && value >= r.values + r.offset && value < r.values + r.offset + bytes;
}

}  // namespace

// Finds or makes the sums that a product adds to, and brings the thread's part.
std::shared_ptr<Sums> sums_of(Thread& me, const tsim_registers& d, const tsim_product& kind,
                              GroupProduct* posted, uint32_t line) {
  const uint32_t bytes = sum_bytes(kind);
  const bool is_half = kind.d_type == TSIM_F16;
  if (Issued::Accumulator* a = find_accumulator(me, d, bytes)) {
    a->latest = me.issued.posted;
    a->line = line;
    return a->sums;
  }
  check_register_fence(me, d, bytes, line);
  if (!kind.sets) read_registers(d, bytes, line);
  std::shared_ptr<Sums> sums = posted ? posted->sums : std::make_shared<Sums>();
  if (!posted) {
    sums->columns = kind.columns;
    sums->is_integer = is_integer(kind.a_type);
    sums->values.assign(size_t(64 * kind.columns), 0.0f);
  }
  const int lane = me.id % WARPGROUP;
  if (!kind.sets) sums->take(lane, d.values + d.offset, is_half);
  write_registers(d, bytes, line);   // checks that they exist, and that no other product has them
  hand_over(d, bytes);
  d.written[d.bytes] = 1;
  me.issued.accumulators.push_back({d, sums, me.issued.posted, bytes, is_half, line});
  return sums;
}

void lend_registers(Thread& me, GroupProduct& product, const tsim_registers& a, uint32_t line) {
  constexpr uint32_t BYTES = 16;
  check_register_fence(me, a, BYTES, line);
  const unsigned char* values = read_registers(a, BYTES, line);
  std::memcpy(product.a_registers[me.id % WARPGROUP], values, BYTES);
  std::memset(a.written + a.offset, TSIM_LENT, BYTES);
  a.written[a.bytes] = 1;
  me.issued.lent.push_back({a, me.issued.posted, BYTES, line});
}

// The thread receives the sums of products before `end`, and its registers.
void receive(Thread& me, uint32_t end) {
  Issued& issued = me.issued;
  size_t kept = 0;
  for (Issued::Accumulator& a : issued.accumulators) {
    if (a.latest >= end) {
      issued.accumulators[kept++] = a;
      continue;
    }
    if (!a.registers.values) continue;
    unsigned char* flags = a.registers.written + a.registers.offset;
    a.sums->give(me.id % WARPGROUP, a.registers.values + a.registers.offset, flags, a.is_half);
    for (uint32_t i = 0; i < a.bytes; ++i) {
      if (flags[i] == TSIM_SUMMED) flags[i] = TSIM_FENCED;
    }
  }
  issued.accumulators.resize(kept);
  kept = 0;
  for (Issued::Lent& lent : issued.lent) {
    if (lent.product >= end) {
      issued.lent[kept++] = lent;
      continue;
    }
    if (!lent.registers.values) continue;
    unsigned char* flags = lent.registers.written + lent.registers.offset;
    for (uint32_t i = 0; i < lent.bytes; ++i) {
      if (flags[i] == TSIM_LENT) flags[i] = TSIM_FENCED;
    }
  }
  issued.lent.resize(kept);
}

uint32_t line_of_product(const Thread& thread, const unsigned char* value) {
  for (const Issued::Accumulator& a : thread.issued.accumulators) {
    if (contains(a.registers, a.bytes, value)) return a.line;
  }
  for (const Issued::Lent& lent : thread.issued.lent) {
    if (contains(lent.registers, lent.bytes, value)) return lent.line;
  }
  return 0;
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_wgmma_pin(const tsim_registers* d, unsigned bytes, unsigned line) {
  Thread& me = *current_thread;
  me.line = line;
  if (d->offset < 0 || int64_t(d->offset) + bytes > d->bytes) {
    write_registers(*d, bytes, line);   // reports it
  }
  make_known(me, *d, bytes);
}

// What the thread has written to registers so far, products may use.
void tsim_wgmma_fence(unsigned line) {
  Thread& me = *current_thread;
  me.line = line;
  me.issued.has_fenced = true;
  for (const Issued::Range& range : me.issued.known) mark_fenced(range.flags, range.bytes);
}

void tsim_forget_registers(const unsigned char* flags, unsigned bytes) {
  if (!current_thread) return;
  Issued& issued = current_thread->issued;
  for (auto& a : issued.accumulators) {
    if (a.registers.written == flags) a.registers.values = nullptr;
  }
  for (auto& lent : issued.lent) {
    if (lent.registers.written == flags) lent.registers.values = nullptr;
  }
  size_t kept = 0;
  for (const Issued::Range& range : issued.known) {
    const bool is_inside = range.flags >= flags && range.flags < flags + bytes;
    if (!is_inside) issued.known[kept++] = range;
  }
  issued.known.resize(kept);
}

}  // extern "C"
