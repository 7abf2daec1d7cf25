// The report when no thread of a block can run.
#pragma once

namespace tsim {

struct Cluster;

void report_deadlock(Cluster& cluster);

}  // namespace tsim
