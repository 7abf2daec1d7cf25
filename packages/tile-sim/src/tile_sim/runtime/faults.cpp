#include "faults.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <pthread.h>
#if defined(__linux__)
#include <link.h>
#include <ucontext.h>
#endif

#include "block.h"

namespace tsim {
namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGURG};
constexpr int COUNT = 4;
// What a thread gets to look whether its launch was stopped. Nobody else minds it.
constexpr int LOOK = SIGURG;
constexpr size_t STACK_BYTES = 65536;

std::mutex handler_mutex;
int launches = 0;
struct sigaction previous[COUNT];

struct sigaction& previous_of(int signal) {
  for (int i = 0; i < COUNT; ++i) {
    if (SIGNALS[i] == signal) return previous[i];
  }
  return previous[0];
}

// Host threads that run blocks, by the `stop` of their launch.
std::mutex workers_mutex;
std::multimap<int*, pthread_t> workers;

// Whether a thread was interrupted in the kernel's own text, where the runtime holds nothing.
bool is_in_kernel(void* context, const Block& block) {
#if defined(__linux__) && defined(__x86_64__)
  const auto at = uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  const auto at = uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  const uintptr_t at = 0;
#endif
  return block.cluster->text.begin <= at && at < block.cluster->text.end;
}

// Leaves a block whose launch was stopped; one that is in the runtime is left where it switches.
void look(void* context) {
  Block* block = current_block;
  if (!block || !current_thread || !is_stopped(*block->config)) return;
  if (!is_in_kernel(context, *block)) return;
  block->cluster->is_abandoned = true;
  siglongjmp(block->cluster->escape, 1);
}

// Leaves the handler for good: the block is given up, and its stacks are written anew for the
// next one.
void handle(int signal, siginfo_t* info, void* context) {
  if (signal == LOOK) return look(context);
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

Text text_of(const tsim_kernel& kernel) {
  struct Search {
    uintptr_t entry;
    Text found;
  } search = {uintptr_t(kernel.run), {}};
#if defined(__linux__)
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const Text text = {info->dlpi_addr + part.p_vaddr,
                             info->dlpi_addr + part.p_vaddr + part.p_memsz};
          if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
          if (text.begin <= s.entry && s.entry < text.end) s.found = text;
        }
        return int(s.found.end != 0);
      },
      &search);
#endif
  return search.found;
}

bool is_stopped(const tsim_config& config) {
  return config.stop && __atomic_load_n(config.stop, __ATOMIC_RELAXED);
}

Worker::Worker(int* stop) : stop_(stop) {
  std::lock_guard<std::mutex> lock(workers_mutex);
  workers.emplace(stop_, pthread_self());
}

Worker::~Worker() {
  std::lock_guard<std::mutex> lock(workers_mutex);
  const auto [first, last] = workers.equal_range(stop_);
  for (auto i = first; i != last; ++i) {
    if (!pthread_equal(i->second, pthread_self())) continue;
    workers.erase(i);
    return;
  }
}

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
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  for (int i = 0; i < COUNT; ++i) sigaction(SIGNALS[i], &action, &previous[i]);
}

FaultHandler::~FaultHandler() {
  std::lock_guard<std::mutex> lock(handler_mutex);
  if (--launches) return;
  for (int i = 0; i < COUNT; ++i) sigaction(SIGNALS[i], &previous[i], nullptr);
}

}  // namespace tsim

using namespace tsim;

extern "C" void tsim_stop(int* stop) {
  __atomic_store_n(stop, 1, __ATOMIC_RELAXED);
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(workers_mutex);
      const auto [first, last] = workers.equal_range(stop);
      if (first == last) return;
      for (auto i = first; i != last; ++i) pthread_kill(i->second, LOOK);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
