#include "fiber.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

// The switch keeps what the calling convention says a function keeps, and nothing more: signal
// masks and floating-point control words are the same for all fibers. That makes it some 30 times
// as fast as swapcontext.
#if defined(__x86_64__)
asm(R"(
.text
.globl tsim_switch_stack
.type tsim_switch_stack,@function
.p2align 4
tsim_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rdx
  jmp *%rdx
.size tsim_switch_stack,.-tsim_switch_stack
)");
constexpr int CONTINUE_WORD = 6;   // above the six saved registers
constexpr int FRAME_WORDS = 8;     // the entry starts with its stack aligned as after a call
#elif defined(__aarch64__)
asm(R"(
.text
.globl tsim_switch_stack
.type tsim_switch_stack,@function
.p2align 4
tsim_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tsim_switch_stack,.-tsim_switch_stack
)");
constexpr int CONTINUE_WORD = 11;  // x30
constexpr int FRAME_WORDS = 20;
#else
#error "the emulator switches stacks on x86-64 and AArch64 only"
#endif

namespace tsim {
namespace {

std::mutex pool_mutex;
std::vector<std::unique_ptr<Stacks>>& pool() {
  static auto* stacks = new std::vector<std::unique_ptr<Stacks>>;  // outlives every thread
  return *stacks;
}
constexpr size_t MAX_POOLED = 4;

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t whole_pages(size_t bytes) {
  const size_t page = page_size();
  return (bytes + page - 1) / page * page;
}

}  // namespace

Stacks::Stacks(int count, size_t bytes) : count_(count), bytes_(whole_pages(bytes) + page_size()) {
  void* memory = mmap(nullptr, count_ * bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  for (int i = 0; i < count_; ++i) mprotect(memory_ + i * bytes_, page_size(), PROT_NONE);
}

Stacks::~Stacks() { munmap(memory_, count_ * bytes_); }

std::unique_ptr<Stacks> Stacks::take(int count, size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(pool_mutex);
    auto& stacks = pool();
    const size_t needed = whole_pages(bytes) + page_size();
    for (size_t i = 0; i < stacks.size(); ++i) {
      if (stacks[i]->count_ < count || stacks[i]->bytes_ < needed) continue;
      std::unique_ptr<Stacks> found = std::move(stacks[i]);
      stacks.erase(stacks.begin() + i);
      return found;
    }
  }
  return std::make_unique<Stacks>(count, bytes);
}

void Stacks::give_back(std::unique_ptr<Stacks> stacks) {
  std::lock_guard<std::mutex> lock(pool_mutex);
  auto& kept = pool();
  if (kept.size() == MAX_POOLED) kept.erase(kept.begin());
  kept.push_back(std::move(stacks));
}

void* Stacks::prepare(int i, void (*entry)()) {
  // Tops at one offset in all stacks would compete for the same cache sets: spread them.
  const size_t colour = static_cast<size_t>(i % 16) * 576 % (bytes_ / 8);
  uintptr_t top = reinterpret_cast<uintptr_t>(memory_ + (i + 1) * bytes_) - colour - 64;
  top &= ~uintptr_t(63);
  void** frame = reinterpret_cast<void**>(top) - FRAME_WORDS;
  std::memset(frame, 0, FRAME_WORDS * sizeof(void*));
  frame[CONTINUE_WORD] = reinterpret_cast<void*>(entry);
  return frame;
}

bool Stacks::is_guard(const void* address) const {
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) - memory_);
  return offset < count_ * bytes_ && offset % bytes_ < page_size();
}

}  // namespace tsim
