// Arrivals that tell of products in tensor memory.
#include "block.h"
#include "cluster.h"
#include "engine.h"
#include "tensor_memory.h"

using namespace tsim;

extern "C" {

// An arrival tells of what its own thread has started, and of nothing that others have since.
// Those of a pair are told both.
void tsim_tensor_commit(const tsim_shared* place, int blocks, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  BulkCopy arrival{};
  arrival.kind = BulkCopy::PRODUCTS;
  arrival.from = arrival.to = arrival.told = &block;
  arrival.thread = me.id;
  arrival.line = line;
  arrival.barrier = mbarrier_offset(*place, line);
  require_mbarrier(block, arrival.barrier, true, line);
  const TensorMemory::Latest latest = block.tensor.own[me.id];
  arrival.position = latest.position;
  arrival.time = latest.time;
  // Copies that the products came after come before what follows the arrival.
  if (block.checks_for(TSIM_CHECK_RACE)) {
    block.clock.add(arrival.released, block.clock.known(me.who));
  }
  if (blocks == 2) {
    Block& other = other_of_pair(block, line);
    note_remote(other, me, line);
    require_mbarrier(other, arrival.barrier, true, line);
    BulkCopy second = arrival;
    second.told = &other;
    if (block.checks_for(TSIM_CHECK_RACE)) {
      second.released = Release();
      block.clock.add(second.released, block.clock.known(me.who));
    }
    block.cluster->engine.issue(block, second);
  }
  block.cluster->engine.issue(block, arrival);
}

}  // extern "C"
