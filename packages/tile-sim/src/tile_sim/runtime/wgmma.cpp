// Products of warpgroups: posted by threads, complete when all have posted, awaited by each.
#include "wgmma.h"

#include <algorithm>
#include <cstring>

#include "access.h"
#include "block.h"
#include "cluster.h"
#include "registers.h"
#include "scheduler.h"

namespace tsim {

Matrix Matrix::of(const tsim_operand& operand, uint32_t offset, uint32_t begin, uint32_t end,
                  bool is_along_k) {
  // The lower word of a descriptor, and what its fields hold of it.
  const uint32_t low =
      offset / 16 + (uint32_t(operand.leading) / 16 << 16) + uint32_t(operand.units);
  Matrix matrix;
  matrix.start = (low & 0x3fff) * 16;
  matrix.leading = (low >> 16 & 0x3fff) * 16;
  matrix.stride = (uint32_t(operand.stride) / 16 & 0x3fff) * 16;
  matrix.swizzle = uint32_t(operand.swizzle);
  matrix.begin = begin;
  matrix.end = end;
  matrix.is_along_k = is_along_k;
  return matrix;
}

void Warpgroup::start() {
  for (auto& product : products) retire(std::move(product));
  products.clear();
  times.clear();
  first = 0;
  std::memset(waiting, 0, sizeof waiting);
}

std::unique_ptr<GroupProduct> Warpgroup::fresh() {
  if (spare_.empty()) return std::make_unique<GroupProduct>();
  std::unique_ptr<GroupProduct> product = std::move(spare_.back());
  spare_.pop_back();
  product->posted = 0;
  product->starts = false;
  product->crew.count = 0;
  product->sums.reset();
  return product;
}

namespace {

[[noreturn]] void refuse(uint32_t line, const std::string& message) {
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, message);
}

Finding register_finding(uint32_t kind, const tsim_registers& r, uint32_t line) {
  Finding finding;
  finding.kind = kind;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(r.offset / r.element_bytes));
  finding.buffer_bytes = uint64_t(r.bytes / r.element_bytes);
  return finding;
}

Warpgroup& warpgroup_of(Block& block, const Thread& thread) {
  return block.warpgroups[size_t(thread.id / WARPGROUP)];
}

void require_warpgroup(const Block& block, const Thread& me, uint32_t line) {
  const bool is_whole = (me.id / WARPGROUP + 1) * WARPGROUP <= block.thread_count;
  if (block.warp_size == 32 && is_whole) return;
  refuse(line, "wgmma in a warpgroup that does not have 128 threads");
}

bool is_integer(int type) { return type == TSIM_I8 || type == TSIM_U8; }
bool is_float8(int type) { return type == TSIM_E4M3 || type == TSIM_E5M2; }

// Whether machines have a product of such types and orders.
bool exists(const tsim_product& p) {
  const bool is_across = p.a_across || p.b_across;
  if (is_integer(p.a_type)) {
    const bool fits = p.columns == 8 || p.columns == 24 || p.columns % 16 == 0;
    return fits && is_integer(p.b_type) && p.d_type == TSIM_I32 && !is_across;
  }
  if (is_float8(p.a_type)) {
    const bool has_sum = p.d_type == TSIM_F32 || p.d_type == TSIM_F16;
    return is_float8(p.b_type) && has_sum && !is_across;
  }
  if (p.a_type != p.b_type) return false;
  if (p.a_type == TSIM_F16) return p.d_type == TSIM_F32 || p.d_type == TSIM_F16;
  if (p.a_type == TSIM_BF16) return p.d_type == TSIM_F32;
  return p.a_type == TSIM_F32 && p.d_type == TSIM_F32 && !is_across;
}

uint32_t sum_bytes(const tsim_product& kind) {
  return uint32_t(kind.columns) / 2 * (kind.d_type == TSIM_F16 ? 2 : 4);
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

Matrix matrix_of(Block& block, const tsim_operand& operand, bool is_along_k, uint32_t line) {
  const uint32_t offset = own_offset(operand.place, line);
  const uint32_t begin = block.arena_offset(operand.place.begin);
  const uint32_t end = block.arena_offset(operand.place.end);
  return Matrix::of(operand, offset, begin, end, is_along_k);
}

bool is_same(const GroupProduct& p, const tsim_product& kind, const Matrix& a, const Matrix& b,
             uint32_t line) {
  return p.line == line && !std::memcmp(&p.kind, &kind, sizeof kind) && p.a.start == a.start &&
         p.b.start == b.start;
}

// What a lane knows when it posts.
void join_crew(Block& block, GroupProduct& product, const Thread& me) {
  Crew& crew = product.crew;
  const Known known = block.clock.known(me.who);
  Crew::Part* last = crew.count ? &crew.parts[crew.count - 1] : nullptr;
  if (last && last->known == known) {
    last->lane = -1;
    return;
  }
  crew.rank = block.rank;
  crew.first = block.clock.thread(block.rank, me.id / WARPGROUP * WARPGROUP);
  block.clock.keep(known);
  crew.parts[crew.count++] = {known, int16_t(me.id % WARPGROUP)};
}

void check_chunk(Block& block, const Matrix& matrix, uint32_t at, uint32_t line) {
  if (!block.checks_for(TSIM_CHECK_BOUNDS)) return;
  if (at >= matrix.begin && at + 16 <= matrix.end) return;
  Finding finding;
  finding.kind = TSIM_OUT_OF_BOUNDS;
  finding.space = TSIM_SHARED;
  finding.line = line;
  finding.actor = TSIM_PRODUCT;
  finding.thread = current_thread->id / WARPGROUP * WARPGROUP;
  finding.offset = uint64_t(int64_t(at) - int64_t(matrix.begin));
  finding.bytes = 16;
  finding.buffer_start = matrix.begin;
  finding.buffer_bytes = matrix.end - matrix.begin;
  report_and_abandon(finding, format("a read of 16 bytes at byte %lld of a buffer of %u bytes in "
                                     "shared memory",
                                     (long long)finding.offset, matrix.end - matrix.begin));
}

// All lanes have posted: the engine is reading from now on.
void read_matrix(Block& block, const Observer& by, const Matrix& matrix, uint32_t rows,
                 uint32_t bytes_along, Stamp stamp) {
  const uint32_t line = stamp_line(stamp);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t along = 0; along < bytes_along; along += 16) {
      const uint32_t at = matrix.chunk(row, along);
      check_chunk(block, matrix, at, line);
      if (!block.checks_for(CHECKS_OF_SHADOW)) continue;
      block.shadow.read_by_engine(block, by, at, 16, stamp);
    }
  }
}

// Eight rows of 16 bytes are read at a time, best in one turn.
void add_turns(const Matrix& matrix, uint32_t rows, uint32_t bytes_along, LineCount& cost) {
  constexpr uint32_t GROUPS_OF_BANKS = 8, CHUNK = 16;
  for (uint32_t row = 0; row < rows; row += GROUPS_OF_BANKS) {
    for (uint32_t along = 0; along < bytes_along; along += CHUNK) {
      uint64_t in_group[GROUPS_OF_BANKS] = {};
      for (uint32_t i = 0; i < GROUPS_OF_BANKS; ++i) {
        ++in_group[matrix.chunk(row + i, along) / CHUNK % GROUPS_OF_BANKS];
      }
      cost.taken += *std::max_element(in_group, in_group + GROUPS_OF_BANKS);
      ++cost.ideal;
      cost.bytes += GROUPS_OF_BANKS * CHUNK;
    }
  }
}

void count_operands(Block& block, const GroupProduct& product) {
  if (!block.checks_for(TSIM_COUNT_BANKS)) return;
  constexpr uint32_t K_BYTES = 32;
  const uint32_t columns = uint32_t(product.kind.columns);
  LineCount cost;
  cost.requests = 1;
  if (product.a.end) {
    if (product.a.is_along_k) add_turns(product.a, 64, K_BYTES, cost);
    else add_turns(product.a, K_BYTES / 2, 64 * 2, cost);
  }
  if (product.b.is_along_k) add_turns(product.b, columns, K_BYTES, cost);
  else add_turns(product.b, K_BYTES / 2, columns * 2, cost);
  block.counters.count({product.line, 0, TSIM_OPERANDS, false}, cost);
}

void begin(Block& block, Warpgroup& group, GroupProduct& product) {
  ++block.statistics.products;
  count_operands(block, product);
  const uint32_t time = block.clock.tick();
  group.times.push_back(time);
  const Stamp stamp =
      make_stamp(time, uint32_t(group.agent), STAMP_PROXY | STAMP_GROUP, product.line);
  const Observer by{block.clock, group.agent, &product.crew};
  const uint32_t columns = uint32_t(product.kind.columns);
  constexpr uint32_t K_BYTES = 32;
  if (product.a.end) {
    if (product.a.is_along_k) read_matrix(block, by, product.a, 64, K_BYTES, stamp);
    else read_matrix(block, by, product.a, K_BYTES / 2, 64 * 2, stamp);
  }
  if (product.b.is_along_k) read_matrix(block, by, product.b, columns, K_BYTES, stamp);
  else read_matrix(block, by, product.b, K_BYTES / 2, columns * 2, stamp);
  for (int i = 0; i < product.crew.count; ++i) block.clock.drop(product.crew.parts[i].known);
  const int first_warp = current_thread->id / WARPGROUP * 4;
  for (int w = 0; w < 4; ++w) {
    if (!group.waiting[w]) continue;
    make_ready(block, first_warp + w, group.waiting[w]);
    group.waiting[w] = 0;
  }
}

// A product that a lane is the first to post.
GroupProduct& add_product(Block& block, Warpgroup& group, const tsim_product& kind, const Matrix& a,
                     const Matrix& b, uint32_t line) {
  if (group.times.empty() && group.products.empty()) {
    const int first = current_thread->id / WARPGROUP * WARPGROUP;
    group.agent = block.agents.take(block, TSIM_PRODUCT, uint32_t(first), first, GROUP);
  }
  group.products.push_back(group.fresh());
  GroupProduct& product = *group.products.back();
  product.kind = kind;
  product.a = a;
  product.b = b;
  product.line = line;
  return product;
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

[[noreturn]] void report_different(const GroupProduct& product, uint32_t line) {
  Finding finding;
  finding.kind = TSIM_DIVERGENCE;
  finding.line = line;
  finding.other_line = product.line;
  report_and_abandon(finding, format("threads of one warpgroup issue different products: this one "
                                     "here, others that at line %u",
                                     product.line));
}

// Computes what is posted before `end`.
void compute_before(Block& block, Warpgroup& group, uint32_t end) {
  while (group.first < end) {
    std::unique_ptr<GroupProduct> product = std::move(group.products.front());
    group.products.pop_front();
    ++group.first;
    compute(block, *product);
    product->sums.reset();
    group.retire(std::move(product));
  }
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

bool contains(const tsim_registers& r, uint32_t bytes, const unsigned char* value) {
  return r.values && value >= r.values + r.offset && value < r.values + r.offset + bytes;
}

}  // namespace

uint32_t line_of_product(const Thread& thread, const unsigned char* value) {
  for (const Issued::Accumulator& a : thread.issued.accumulators) {
    if (contains(a.registers, a.bytes, value)) return a.line;
  }
  for (const Issued::Lent& lent : thread.issued.lent) {
    if (contains(lent.registers, lent.bytes, value)) return lent.line;
  }
  return 0;
}

void check_products_at_exit(Block& block, Thread& thread) {
  const Issued& issued = thread.issued;
  if (issued.awaited == issued.posted || !block.checks_for(TSIM_CHECK_WAIT)) return;
  Finding finding;
  finding.kind = TSIM_MISSING_WAIT;
  finding.actor = TSIM_PRODUCT;
  finding.thread = thread.id / WARPGROUP * WARPGROUP;
  finding.line = issued.accumulators.empty() ? 0 : issued.accumulators.back().line;
  report(finding, "the block ends while the product may still be under way");
}

bool report_partial_products(Block& block) {
  bool found = false;
  for (Warpgroup& group : block.warpgroups) {
    for (auto& product : group.products) {
      if (product->posted == WARPGROUP) continue;
      Finding finding;
      finding.kind = TSIM_DIVERGENCE;
      finding.line = product->line;
      finding.rank = block.rank;
      report(finding, format("wgmma of %d threads: all 128 of a warpgroup issue it together",
                             product->posted));
      found = true;
      break;
    }
  }
  return found;
}

std::string product_awaited_by(Block& block, const Thread& thread) {
  Warpgroup& group = warpgroup_of(block, thread);
  for (auto& product : group.products) {
    if (product->posted == WARPGROUP) continue;
    return format("wait for the wgmma at line %u, which %d of 128 threads have issued",
                  product->line, product->posted);
  }
  return "wait for a wgmma";
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_wgmma(const tsim_registers* d, const tsim_operand* a, const tsim_registers* a_registers,
                const tsim_operand* b, const tsim_product* kind, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  require_warpgroup(block, me, line);
  if (!exists(*kind)) refuse(line, "no wgmma of such element types, orders and columns");
  const Matrix a_matrix = a ? matrix_of(block, *a, !kind->a_across, line) : Matrix();
  const Matrix b_matrix = matrix_of(block, *b, !kind->b_across, line);
  Warpgroup& group = warpgroup_of(block, me);
  GroupProduct* product = group.find(me.issued.posted);
  if (product && !is_same(*product, *kind, a_matrix, b_matrix, line)) {
    report_different(*product, line);
  }
  const std::shared_ptr<Sums> sums = sums_of(me, *d, *kind, product, line);
  if (!product) {
    product = &add_product(block, group, *kind, a_matrix, b_matrix, line);
    product->sums = sums;
  } else if (product->sums != sums) {
    report_different(*product, line);
  }
  if (a_registers) lend_registers(me, *product, *a_registers, line);
  if (block.checks_for(TSIM_CHECK_RACE)) join_crew(block, *product, me);
  ++me.issued.posted;
  if (++product->posted == WARPGROUP) begin(block, group, *product);
}

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

void tsim_wgmma_commit(unsigned line) {
  Thread& me = *current_thread;
  me.line = line;
  me.issued.group_ends.push_back(me.issued.posted);
}

void tsim_wgmma_wait(int pending, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  Issued& issued = me.issued;
  if (issued.group_ends.size() <= size_t(pending)) return;
  const uint32_t end = issued.group_ends[issued.group_ends.size() - 1 - size_t(pending)];
  if (end <= issued.awaited) return;
  Warpgroup& group = warpgroup_of(block, me);
  while (group.times.size() < end) {
    group.waiting[me.warp % 4] |= 1ull << me.lane;
    wait_in(State::AT_PRODUCT, line);
  }
  compute_before(block, group, end);
  issued.awaited = end;
  issued.group_ends.erase(issued.group_ends.begin(), issued.group_ends.end() - pending);
  receive(me, end);
  if (block.checks_for(TSIM_CHECK_RACE)) {
    // Each warp waits for its own part of the products.
    block.clock.learn(me.who, group.agent + me.warp % GROUP, group.times[end - 1]);
  }
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
