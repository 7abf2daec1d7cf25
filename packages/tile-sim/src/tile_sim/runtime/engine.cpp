#include "engine.h"

#include <cstring>

#include "access.h"
#include "async_copy.h"
#include "block.h"
#include "cluster.h"
#include "mbarrier.h"

namespace tsim {
namespace {

// Acts for the thread that issued some work, whichever thread runs.
class InPlaceOf {
 public:
  explicit InPlaceOf(const BulkCopy& copy) : block_(current_block), thread_(current_thread) {
    current_block = copy.from;
    current_thread = &copy.from->threads[size_t(copy.thread)];
  }
  ~InPlaceOf() {
    current_block = block_;
    current_thread = thread_;
  }

 private:
  Block* block_;
  Thread* thread_;
};

void move_bytes(const BulkCopy& copy) {
  unsigned char* to = copy.to->arena + copy.offset;
  switch (copy.kind) {
    case BulkCopy::BOX:
      load_box(copy.box, copy.to->arena, copy.offset);
      break;
    case BulkCopy::THREAD_COPIES:
    case BulkCopy::PRODUCTS:
      break;
    default:
      std::memcpy(to, copy.source, copy.bytes);
  }
}

// A remote copy has read its source only when it has arrived.
void arrive_at(const BulkCopy& copy) {
  Block& owner = *copy.to;
  Mbarrier& barrier = *copy.told->mbarriers.find(copy.barrier);
  --barrier.copies;
  const uint32_t time = owner.clock.tick();
  if (owner.checks_for(CHECKS_OF_SHADOW)) {
    const Stamp stamp = make_stamp(time, uint32_t(barrier.agent), STAMP_PROXY, copy.line);
    owner.shadow.end_copy(copy.offset, copy.bytes, stamp);
  }
  arrive_bytes(*copy.told, barrier, copy.bytes, time, copy.line);
}

// Copies that their thread has not waited for are over at a time it knows nothing of: what it
// fenced before was too early.
void complete_thread_copies(const BulkCopy& item, bool is_waited_for) {
  Block& block = *item.from;
  Thread& thread = block.threads[size_t(item.thread)];
  Mbarrier& barrier = *block.mbarriers.find(item.barrier);
  if (is_waited_for) {
    complete_copies(block, thread, item.position, item.time, -1, 0);
  } else {
    const uint32_t time = block.clock.tick();
    complete_copies(block, thread, item.position, item.time, barrier.agent, time);
    if (block.checks_for(TSIM_CHECK_RACE)) {
      block.clock.learn(barrier.released, barrier.agent, time);
    }
  }
  arrive_later(block, barrier, item.released, item.line);
}

}  // namespace

void Engine::issue(Block& block, const BulkCopy& copy) {
  queue_.push_back(copy);
  if (arrives_at_once(block)) {
    deliver(queue_.size() - 1);
  } else if (copy.kind != BulkCopy::THREAD_COPIES && copy.kind != BulkCopy::PRODUCTS) {
    // Until it arrives there is neither the old value nor the new one.
    std::memset(copy.to->arena + copy.offset, 0xff, copy.bytes);
  }
}

void Engine::deliver(size_t number, bool is_waited_for) {
  const BulkCopy::Kind kind = queue_[number].kind;
  if (kind == BulkCopy::THREAD_COPIES || kind == BulkCopy::PRODUCTS) number = deliver_earlier(number);
  BulkCopy copy = queue_[number];
  queue_.erase(queue_.begin() + std::ptrdiff_t(number));
  InPlaceOf issuer(copy);
  if (copy.kind == BulkCopy::THREAD_COPIES) {
    complete_thread_copies(copy, is_waited_for);
    copy.from->clock.forget(copy.released);
    return;
  }
  if (copy.kind == BulkCopy::PRODUCTS) {
    complete_products(copy);
    copy.from->clock.forget(copy.released);
    return;
  }
  move_bytes(copy);
  arrive_at(copy);
}

// What a thread has asked for before the arrival `number` is due when this is: its copies, and its
// products, end in order. Blocks are told of these apart. Returns the arrival's number then.
size_t Engine::deliver_earlier(size_t number) {
  for (size_t i = 0; i < number;) {
    const BulkCopy &earlier = queue_[i], &item = queue_[number];
    if (earlier.kind != item.kind || earlier.from != item.from ||
        earlier.told != item.told || earlier.thread != item.thread) {
      ++i;
      continue;
    }
    const size_t before = queue_.size();
    deliver(i);
    number -= before - queue_.size();
  }
  return number;
}

bool Engine::deliver_one(Cluster& cluster) {
  if (queue_.empty()) return false;
  size_t number = 0;
  if (cluster.config->schedule == TSIM_REVERSE) number = queue_.size() - 1;
  if (cluster.config->schedule == TSIM_RANDOM || cluster.config->async_mode == TSIM_ANY_TIME) {
    number = next_random(*cluster.blocks[0]) % queue_.size();
  }
  deliver(number);
  return true;
}

void Engine::deliver_at_any_time(Cluster& cluster) {
  if (cluster.config->async_mode != TSIM_ANY_TIME) return;
  if ((next_random(*cluster.blocks[0]) >> 20 & 7) == 0) deliver_one(cluster);
}

void Engine::deliver_arrivals(const Block& block, int thread, uint64_t position) {
  for (size_t i = 0; i < queue_.size();) {
    const BulkCopy& item = queue_[i];
    const bool is_due = item.kind == BulkCopy::THREAD_COPIES && item.from == &block &&
                        item.thread == thread && item.position <= position;
    if (is_due) deliver(i, true);
    else ++i;
  }
}

void Engine::check_at_exit(Block& block) {
  for (size_t i = 0; i < queue_.size();) {
    const BulkCopy& copy = queue_[i];
    if (copy.to != &block && copy.told != &block) {
      ++i;
      continue;
    }
    if (block.checks_for(TSIM_CHECK_WAIT)) {
      InPlaceOf issuer(copy);
      Finding finding;
      finding.kind = TSIM_MISSING_WAIT;
      finding.space = TSIM_SHARED;
      finding.line = copy.line;
      finding.actor = TSIM_COPY;
      finding.offset = copy.offset;
      finding.bytes = copy.bytes;
      finding.buffer_bytes = block.config->shared_bytes;
      if (copy.kind == BulkCopy::PRODUCTS) {
        finding.actor = TSIM_TENSOR_PRODUCT;
        report(finding, "the block ends while a product may still be under way");
        queue_.erase(queue_.begin() + std::ptrdiff_t(i));
        continue;
      }
      report(finding, format("the block ends while the copy to byte %u of its shared memory is "
                             "still on its way",
                             copy.offset));
    }
    queue_.erase(queue_.begin() + std::ptrdiff_t(i));
  }
}

}  // namespace tsim
