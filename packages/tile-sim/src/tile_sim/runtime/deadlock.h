// The report when no thread of a block can run.
#pragma once

namespace tsim {

struct Block;

void report_deadlock(Block& block);

}  // namespace tsim
