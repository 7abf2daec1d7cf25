// Barriers in shared memory that count arrivals of threads and bytes of asynchronous copies.
//
// A barrier is a 64-bit word, `bar`. Phases of it complete one after the other: when as many
// threads have arrived as `mbarrier_init` said, and all announced bytes are there. Who waits
// names the parity of a phase, 0 for the first.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

// By one thread, and then `fence_mbarrier_init` and a barrier of the block (or the cluster).
TILE_DEVICE void mbarrier_init(u64* bar, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals)
               : "memory");
}

TILE_DEVICE void mbarrier_arrive(u64* bar) {
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(
                   shared_address(bar))
               : "memory");
}

// This thread's earlier `cp_async` arrive when they are complete; they count as one arrival.
TILE_DEVICE void cp_async_mbarrier_arrive(u64* bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(bar))
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// Until the phase of `parity` has completed. The loop is one block of machine code that no
// instruction is moved into or across. What threads of this block wrote before they arrived is
// seen then; with `_cluster`, also what threads of other blocks did.
#define TILE_MBARRIER_WAIT(NAME, ORDER)                                                    \
  TILE_DEVICE void NAME(u64* bar, u32 parity) {                                            \
    asm volatile(                                                                          \
        "{\n\t.reg .pred done;\n"                                                          \
        "WAIT_%=:\n\tmbarrier.try_wait.parity" ORDER ".shared::cta.b64 done, [%0], %1;\n\t" \
        "@done bra DONE_%=;\n\tbra WAIT_%=;\n"                                             \
        "DONE_%=:\n\t}" ::"r"(shared_address(bar)),                                        \
        "r"(parity)                                                                        \
        : "memory");                                                                       \
  }
TILE_MBARRIER_WAIT(mbarrier_wait, "")
TILE_MBARRIER_WAIT(mbarrier_wait_cluster, ".acquire.cluster")
#undef TILE_MBARRIER_WAIT

// As an arrival at the same barrier of block `rank` of the cluster. Who frees memory tells that it
// has read it; who arrives tells of all that it wrote, too, and waits until global memory has it.
#define TILE_MBARRIER_REMOTE(NAME, ORDER)                                                  \
  TILE_DEVICE void NAME(u64* bar, u32 rank) {                                              \
    asm volatile(                                                                          \
        "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"            \
        "mbarrier.arrive" ORDER ".shared::cluster.b64 _, [there];\n\t}" ::"r"(             \
            shared_address(bar)),                                                          \
        "r"(rank)                                                                          \
        : "memory");                                                                       \
  }
TILE_MBARRIER_REMOTE(mbarrier_arrive_remote, ".release.cluster")
TILE_MBARRIER_REMOTE(mbarrier_free_remote, "")
#undef TILE_MBARRIER_REMOTE

// The current phase completes only when `bytes` more have been copied.
TILE_DEVICE void mbarrier_expect_tx(u64* bar, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
                   shared_address(bar)),
               "r"(bytes)
               : "memory");
}
TILE_DEVICE void mbarrier_arrive_expect_tx(u64* bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(bar)),
               "r"(bytes)
               : "memory");
}

// Barriers that were just set up are seen by the copies, and by the other blocks of the cluster.
TILE_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What this thread wrote to shared memory is seen by asynchronous copies and products, and what it
// read there may be overwritten by copies, once they are told.
TILE_DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#else
TILE_DEVICE void mbarrier_wait(u64* bar, u32 parity) {
  u32 done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(shared_address(bar)), "r"(parity)
        : "memory");
  } while (!done);
}

// Copies of `cp_async` see barriers and memory as threads do.
TILE_DEVICE void fence_mbarrier_init() {}
#endif

}  // namespace tile
