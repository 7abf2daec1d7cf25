// Fibers: stacks, and the switch from one to another.
#pragma once

#include <cstddef>
#include <memory>

namespace tsim {

// The stacks of the threads of one block, reused from block to block and from launch to launch:
// mapping them and faulting their pages in costs more than running a small kernel.
class Stacks {
 public:
  Stacks(int count, size_t bytes);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Stacks for `count` threads of at least `bytes` bytes: pooled ones, or new ones.
  static std::unique_ptr<Stacks> take(int count, size_t bytes);
  // Back to the pool.
  static void give_back(std::unique_ptr<Stacks> stacks);

  // Prepares stack `i` such that switching to the returned pointer calls `entry`, which must
  // never return.
  void* prepare(int i, void (*entry)());

  // Whether an address lies in the guard page below one of the stacks.
  bool is_guard(const void* address) const;

 private:
  int count_;
  size_t bytes_;   // of one stack, guard page included
  char* memory_;
};

// Saves the running fiber's stack pointer to `*saved` and continues at `next`.
extern "C" void tsim_switch_stack(void** saved, void* next);

}  // namespace tsim
