"""The LLVM text of the function that runs a parallel loop on OpenMP threads.

TVM turns a PARALLEL loop into a call of ``__TVMBackendParallelLaunch(body, data, tasks)``. Ours
opens an OpenMP parallel region whose threads take chunks of the loop from a shared counter,
so uneven blocks balance themselves.
"""

from __future__ import annotations

import platform
import re
from dataclasses import fields

from tile_core.records import dataclass
from tile_cpu.cpu_machine import Isa, host_isa

# Chunks per thread: enough to balance, few enough that taking one costs nothing.
CHUNKS_PER_THREAD = 32
ENTRY, THREADS_ENTRY = "address", "threads_address"
_POINTERS = "p270:32:32-p271:32:32-p272:64:64"
_ARM = "i64:64-i128:128-n32:64-S128-Fn32"
OWN_CODE = {
    (Isa.X86_64, "Linux"): (
        "x86_64-conda-linux-gnu",
        f"e-m:e-{_POINTERS}-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    ),
    (Isa.AARCH64, "Linux"): (
        "aarch64-unknown-linux-gnu",
        f"e-m:e-{_POINTERS}-i8:8:32-i16:16:32-{_ARM}",
    ),
    (Isa.X86_64, "Darwin"): (
        "x86_64-apple-macosx10.15.0",
        f"e-m:o-{_POINTERS}-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    ),
    (Isa.AARCH64, "Darwin"): ("arm64-apple-macosx14.0.0", f"e-m:o-{_POINTERS}-{_ARM}"),
}
"""The triple and the data layout of a process's own code, on which LLVM's linker insists."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where in this process the launcher finds what it calls and reads.

    An error belongs to the thread that raised it, and has to be carried to the caller.
    """

    parallel: int  # GOMP_parallel
    max_threads: int  # omp_get_max_threads
    in_parallel: int  # omp_in_parallel
    take_error: int  # TVMFFIErrorMoveFromRaised
    set_error: int  # TVMFFIErrorSetRaised
    describe_error: int  # TVMFFIErrorSetRaisedFromCStr
    release: int  # TVMFFIObjectDecRef
    thread_count: int  # an int32: threads to use, 0 to ask OpenMP
    work: int  # an int64: nanoseconds the next loop will take on one thread, 0 if unknown


def own_system() -> tuple[Isa, str]:
    """Return what this process runs on: which of `OWN_CODE`, if it is there."""
    return host_isa(), platform.system()


def launcher_text(at: Addresses, inline_below_ns: int, most: int) -> str:
    """Return IR that defines the launcher, its worker, and how many threads it would use.

    Where OpenMP chooses there are at `most` so many.
    Functions `ENTRY` and `THREADS_ENTRY` take nothing and return the addresses of the launcher
    and of the function that tells the number. The text is a module as
    `tvm.runtime.load_module` reads it.
    """
    triple, layout = OWN_CODE[own_system()]
    known = {
        "CHUNKS": CHUNKS_PER_THREAD,
        "SMALL": inline_below_ns,
        "ENTRY": ENTRY,
        "THREADS_ENTRY": THREADS_ENTRY,
        "LAYOUT": layout,
        "TRIPLE": triple,
        **{f.name.upper(): f"inttoptr (i64 {getattr(at, f.name)} to ptr)" for f in fields(at)},
        "MOST": most,
    }
    return re.sub("@([A-Z_]+)@", lambda found: str(known[found[1]]), _TEXT)


_TEXT = """\
target datalayout = "@LAYOUT@"
target triple = "@TRIPLE@"

; body(i32 task, ptr env, ptr data) runs one task; env says into how many the loop is cut
%env = type { ptr, i32 }
; body, data, next task, number of tasks, first error, whether a task failed
%job = type { ptr, ptr, i32, i32, ptr, i32 }

@openmp_failed_kind = internal constant [13 x i8] c"RuntimeError\\00"
@openmp_failed_text = internal constant [33 x i8] c"a task of a parallel loop failed\\00"

define void @openmp_worker(ptr %job) nounwind {
entry:
  %env = alloca %env, align 8
  %error = alloca ptr, align 8
  %body = load ptr, ptr %job, align 8
  %p.data = getelementptr %job, ptr %job, i32 0, i32 1
  %data = load ptr, ptr %p.data, align 8
  %p.next = getelementptr %job, ptr %job, i32 0, i32 2
  %p.count = getelementptr %job, ptr %job, i32 0, i32 3
  %p.error = getelementptr %job, ptr %job, i32 0, i32 4
  %p.failed = getelementptr %job, ptr %job, i32 0, i32 5
  %count = load i32, ptr %p.count, align 4
  store ptr null, ptr %env, align 8
  %p.tasks = getelementptr %env, ptr %env, i32 0, i32 1
  store i32 %count, ptr %p.tasks, align 8
  br label %take
take:
  %task = atomicrmw add ptr %p.next, i32 1 monotonic
  %more = icmp slt i32 %task, %count
  br i1 %more, label %run, label %done
run:
  %rc = call i32 %body(i32 %task, ptr %env, ptr %data)
  %bad = icmp ne i32 %rc, 0
  br i1 %bad, label %fail, label %take
fail:
  store atomic i32 1, ptr %p.failed monotonic, align 4
  store atomic i32 %count, ptr %p.next monotonic, align 4
  store ptr null, ptr %error, align 8
  call void @TAKE_ERROR@(ptr %error)
  %raised = load ptr, ptr %error, align 8
  %none = icmp eq ptr %raised, null
  br i1 %none, label %take, label %keep
keep:
  %swap = cmpxchg ptr %p.error, ptr null, ptr %raised acq_rel monotonic
  %first = extractvalue { ptr, i1 } %swap, 1
  br i1 %first, label %take, label %drop
drop:
  %ignored = call i32 @RELEASE@(ptr %raised)
  br label %take
done:
  ret void
}

; how many threads a loop would run on: one if this thread already runs a share of another
define i32 @openmp_threads() nounwind {
entry:
  %inside = call i32 @IN_PARALLEL@()
  %nested = icmp ne i32 %inside, 0
  br i1 %nested, label %one, label %ask
one:
  ret i32 1
ask:
  %wanted = load atomic i32, ptr @THREAD_COUNT@ monotonic, align 4
  %chosen = call i32 @MAX_THREADS@()
  %max = call i32 @llvm.smin.i32(i32 %chosen, i32 @MOST@)
  %set = icmp sgt i32 %wanted, 0
  %n = select i1 %set, i32 %wanted, i32 %max
  ret i32 %n
}

define i32 @openmp_launch(ptr %body, ptr %data, i32 %tasks) nounwind {
entry:
  %job = alloca %job, align 8
  %env = alloca %env, align 8
  %work = atomicrmw xchg ptr @WORK@, i64 0 monotonic
  %known = icmp sgt i64 %work, 0
  %short = icmp slt i64 %work, @SMALL@
  %small = and i1 %known, %short
  br i1 %small, label %inline, label %ask
ask:
  %n = call i32 @openmp_threads()
  %alone = icmp sle i32 %n, 1
  br i1 %alone, label %inline, label %team
inline:
  %one = call i32 @llvm.smax.i32(i32 %tasks, i32 1)
  store ptr null, ptr %env, align 8
  %p.env = getelementptr %env, ptr %env, i32 0, i32 1
  store i32 %one, ptr %p.env, align 8
  br label %next
next:
  %i = phi i32 [ 0, %inline ], [ %i1, %go ]
  %left = icmp slt i32 %i, %one
  br i1 %left, label %go, label %fine
go:
  %rc = call i32 %body(i32 %i, ptr %env, ptr %data)
  %i1 = add i32 %i, 1
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %next, label %bad
bad:
  ret i32 %rc
fine:
  ret i32 0
team:
  %many = mul i32 %n, @CHUNKS@
  %free = icmp eq i32 %tasks, 0
  %count = select i1 %free, i32 %many, i32 %tasks
  store ptr %body, ptr %job, align 8
  %p.data = getelementptr %job, ptr %job, i32 0, i32 1
  store ptr %data, ptr %p.data, align 8
  %p.next = getelementptr %job, ptr %job, i32 0, i32 2
  store i32 0, ptr %p.next, align 8
  %p.count = getelementptr %job, ptr %job, i32 0, i32 3
  store i32 %count, ptr %p.count, align 4
  %p.error = getelementptr %job, ptr %job, i32 0, i32 4
  store ptr null, ptr %p.error, align 8
  %p.failed = getelementptr %job, ptr %job, i32 0, i32 5
  store i32 0, ptr %p.failed, align 8
  call void @PARALLEL@(ptr @openmp_worker, ptr %job, i32 %n, i32 0)
  %failed = load i32, ptr %p.failed, align 8
  %clean = icmp eq i32 %failed, 0
  br i1 %clean, label %fine, label %raise
raise:
  %error = load ptr, ptr %p.error, align 8
  %silent = icmp eq ptr %error, null
  br i1 %silent, label %describe, label %hand
describe:
  call void @DESCRIBE_ERROR@(ptr @openmp_failed_kind, ptr @openmp_failed_text)
  ret i32 -1
hand:
  call void @SET_ERROR@(ptr %error)
  %ignored = call i32 @RELEASE@(ptr %error)
  ret i32 -1
}

declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)

define i32 @__tvm_ffi_@ENTRY@(ptr %self, ptr %args, i32 %n, ptr %result) {
  store i32 1, ptr %result, align 8
  %value = getelementptr i8, ptr %result, i64 8
  store i64 ptrtoint (ptr @openmp_launch to i64), ptr %value, align 8
  ret i32 0
}

define i32 @__tvm_ffi_@THREADS_ENTRY@(ptr %self, ptr %args, i32 %n, ptr %result) {
  store i32 1, ptr %result, align 8
  %value = getelementptr i8, ptr %result, i64 8
  store i64 ptrtoint (ptr @openmp_threads to i64), ptr %value, align 8
  ret i32 0
}

!llvm.module.flags = !{!0}
!0 = !{i32 2, !"tvm_target", !"{\\22kind\\22:\\22llvm\\22}"}
"""
