// Values that all lanes of a warp claim to have alike, compared without making lanes wait.
//
// The device takes the value of one lane for all. Lanes reach a line one after the other; the n-th
// value of each since they were last together is compared with the n-th of the first that came.
#pragma once

#include <cstdint>
#include <vector>

namespace tsim {

class UniformValues {
 public:
  // All lanes are together.
  void forget() { sites_.clear(); }
  // Notes a value; returns the lane that had another one at its place, or -1.
  int note(uint32_t line, int lane, uint64_t value);

 private:
  struct First {
    uint64_t value;
    int lane;
  };
  struct Site {
    uint32_t line;
    uint32_t reached[64] = {};
    std::vector<First> firsts;
  };
  std::vector<Site> sites_;
};

}  // namespace tsim
