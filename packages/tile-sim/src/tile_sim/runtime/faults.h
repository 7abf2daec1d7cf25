// Wild accesses of a kernel: they end its block, not the process.
#pragma once

#include <cstdint>

#include "abi.h"

namespace tsim {

// Where the machine code of a kernel's library lies.
struct Text {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

Text text_of(const tsim_kernel& kernel);

// Whether somebody has stopped the launch.
bool is_stopped(const tsim_config& config);

// The calling thread runs blocks of a launch that may be stopped.
class Worker {
 public:
  explicit Worker(int* stop);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  int* stop_;
};

// A stack for signal handlers of the calling thread: the fiber's own may be what overflowed.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  char* memory_;
};

// Catches faults while a launch runs; faults outside blocks go to whoever handled them before.
class FaultHandler {
 public:
  FaultHandler();
  ~FaultHandler();
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;
};

}  // namespace tsim
