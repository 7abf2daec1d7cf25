#include "faults.h"

#include <csignal>
#include <cstring>
#include <mutex>

#include "block.h"

namespace tsim {
namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr size_t STACK_BYTES = 65536;

std::mutex handler_mutex;
int launches = 0;
struct sigaction previous[3];

struct sigaction& previous_of(int signal) {
  for (int i = 0; i < 3; ++i) {
    if (SIGNALS[i] == signal) return previous[i];
  }
  return previous[0];
}

// Leaves the handler for good: the block is given up, and its stacks are written anew for the
// next one.
void handle(int signal, siginfo_t* info, void* context) {
  Block* block = current_block;
  if (!block || !current_thread) {
    struct sigaction& earlier = previous_of(signal);
    if (earlier.sa_flags & SA_SIGINFO) {
      earlier.sa_sigaction(signal, info, context);
    } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) {
      earlier.sa_handler(signal);
    } else {
      ::signal(signal, SIG_DFL);
      raise(signal);
    }
    return;
  }
  Finding finding;
  finding.kind = TSIM_FAULT;
  finding.line = current_thread->line;   // where it last told the runtime what it does
  if (signal == SIGFPE) {
    finding.kind = TSIM_UNDEFINED;
    report(finding, "an integer is divided by zero, or the lowest one by -1");
  } else if (block->cluster->stacks->is_guard(info->si_addr)) {
    report(finding, format("a thread's stack of %u bytes is full", block->config->stack_bytes));
  } else {
    report(finding, format("an access to address %p, where there is no memory", info->si_addr));
  }
  block->cluster->is_abandoned = true;
  siglongjmp(block->cluster->escape, 1);
}

}  // namespace

SignalStack::SignalStack() : memory_(new char[STACK_BYTES]) {
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = STACK_BYTES;
  sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  delete[] memory_;
}

FaultHandler::FaultHandler() {
  std::lock_guard<std::mutex> lock(handler_mutex);
  if (launches++) return;
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &action, &previous[i]);
}

FaultHandler::~FaultHandler() {
  std::lock_guard<std::mutex> lock(handler_mutex);
  if (--launches) return;
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &previous[i], nullptr);
}

}  // namespace tsim
