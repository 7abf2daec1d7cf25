#include "collective.h"

namespace tsim {

const char* name_of_operation(int operation) {
  switch (operation) {
    case OP_SYNC_WARP:
      return "sync_warp";
    case OP_SHUFFLE:
      return "a shuffle";
    case OP_BALLOT:
      return "a vote";
    case OP_MATCH:
      return "a match";
    case OP_LOAD_MATRIX:
      return "ldmatrix";
    case OP_STORE_MATRIX:
      return "stmatrix";
    case OP_ELECT:
      return "elect";
    case OP_MFMA:
      return "mfma";
    case OP_LDS_LOAD:
      return "lds_load";
    case OP_LDS_WAIT:
      return "lds_wait";
    default:
      return "mma";
  }
}

namespace {

Finding divergence(uint32_t line) {
  Finding finding;
  finding.kind = TSIM_DIVERGENCE;
  finding.line = line;
  return finding;
}

Rendezvous& free_rendezvous(Warp& warp, uint64_t needed, uint32_t line) {
  Rendezvous* free = nullptr;
  for (Rendezvous& r : warp.rendezvous) {
    if (r.arrived && r.needed == needed) return r;
    if (!r.arrived && !free) free = &r;
  }
  if (free) return *free;
  report_and_abandon(divergence(line),
                     "lanes of one warp are in more than four operations at once");
}

}  // namespace

Rendezvous& meet(int operation, uint64_t needed, uint32_t line) {
  Warp& warp = current_block->warps[current_thread->warp];
  Rendezvous* r = &warp.rendezvous[0];
  if (!r->arrived || r->needed != needed) r = &free_rendezvous(warp, needed, line);
  if (!r->arrived) {
    r->needed = needed;
    r->operation = operation;
    r->line = line;
  } else if (r->operation != operation) {
    Finding finding = divergence(line);
    finding.other_line = r->line;
    report_and_abandon(finding,
                       format("lanes of one warp execute different operations: %s here, %s at line "
                              "%u",
                              name_of_operation(operation), name_of_operation(r->operation),
                              r->line));
  }
  if (needed & ~warp.alive) {
    report_and_abandon(divergence(line),
                       format("%s of lanes of which some have exited (needed %llx, left %llx)",
                              name_of_operation(operation), (unsigned long long)needed,
                              (unsigned long long)warp.alive));
  }
  if (!(needed >> current_thread->lane & 1)) {
    report_and_abandon(divergence(line), format("a lane executes %s whose mask leaves it out",
                                                name_of_operation(operation)));
  }
  return *r;
}

}  // namespace tsim
