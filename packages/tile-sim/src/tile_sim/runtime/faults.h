// Wild accesses of a kernel: they end its block, not the process.
#pragma once

namespace tsim {

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
