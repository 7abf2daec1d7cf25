// Products of warpgroups: posted by threads, complete when all have posted, awaited by each.
#include "wgmma.h"

#include <cstring>

#include "block.h"
#include "scheduler.h"

namespace tsim {

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
  product->crew.count = 0;
  product->sums.reset();
  return product;
}

namespace {

Warpgroup& warpgroup_of(Block& block, const Thread& thread) {
  return block.warpgroups[size_t(thread.id / WARPGROUP)];
}

void require_warpgroup(const Block& block, const Thread& me, uint32_t line) {
  const bool is_whole = (me.id / WARPGROUP + 1) * WARPGROUP <= block.thread_count;
  if (block.warp_size == 32 && is_whole) return;
  refuse(line, "wgmma in a warpgroup that does not have 128 threads");
}

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

void begin(Block& block, Warpgroup& group, GroupProduct& product) {
  ++block.statistics.products;
  count_operands(block, product);
  const uint32_t time = block.clock.tick();
  group.times.push_back(time);
  const Stamp stamp =
      make_stamp(time, uint32_t(group.agent), STAMP_PROXY | STAMP_GROUP, product.line);
  const Observer by{block.clock, group.agent, &product.crew};
  read_operands(block, by, product, stamp);
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

}  // namespace

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

}  // extern "C"
