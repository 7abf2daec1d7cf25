"""What a worker does with candidates: compile, run and compare, run and look at the clock."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile_api.autotuner.job import Job, read_tensors, write_tensors
from tile_api.autotuner.search import FINALISTS
from tile_api.timing.compare import assert_close, assert_outputs_close, listed

_MOST_CALLS = 10_000

_RUNS_KEPT = FINALISTS + 1
"""Candidates whose outputs stay in memory: those that are measured in turns, and a new one."""


class Bench:
    """Kernels and inputs that this process holds; each is read once, when it is first needed."""

    def __init__(self) -> None:
        self._kernels: dict[str, Any] = {}
        self._runs: OrderedDict[tuple[str, str], Callable[[], object]] = OrderedDict()
        self._shared: dict[str, list[Any]] = {}
        self._clock: Callable[[], float] | None = None

    def ready(self, target: str) -> dict[str, Any]:
        """Load what running compiled kernels needs, which takes longer than running some."""
        import numpy

        from tile_api.disk_cache import entry_codec
        from tile_core.plugins.host import default_host
        from tile_launch import loading

        default_host().resolve(target)
        return {"loaded": [numpy.__name__, entry_codec.__name__, loading.__name__]}

    def warm(self, target: str) -> dict[str, Any]:
        """Load what compiling for a target needs; kernels are not run in this process.

        TVM loads torch if it is there, which takes as long as everything else and is of no use.
        """
        sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
        from tile_api.autotuner.probe import add_one
        from tile_api.compiling import compile

        compile(add_one, target=target)
        return {}

    def expect(self, job: str, sizes: dict[str, int]) -> dict[str, Any]:
        """Return the milliseconds that the cost model expects of a candidate, and its program."""
        from tile_api.autotuner.ranking import expected_of_job

        found = expected_of_job(Job.read(job), sizes)
        return {"milliseconds": found.milliseconds, "program": found.program}

    def compile(self, job: str) -> dict[str, Any]:
        """Compile a candidate, so that it lies in the cache."""
        Job.read(job).compiled()
        return {}

    def load(self, job: str) -> dict[str, Any]:
        """Make a candidate ready to run."""
        self._kernel(job)
        return {}

    def check(
        self,
        job: str,
        inputs: str,
        expected: str | None = None,
        outputs: str | None = None,
        tolerances: tuple[float, float, float] = (1e-2, 1e-2, 0.01),
    ) -> dict[str, Any]:
        """Run a candidate once on inputs of its own; compare, or write down, what it gives.

        `expected` is a file: the inputs as the reference left them, and then what it returned. Into
        the file `outputs` go the kernel's inputs and outputs, for a check elsewhere. `tolerances`
        are absolute, relative, and the share of elements that may differ.
        """
        kernel = self._kernel(job)
        before = read_tensors(inputs)
        args = self._placed(kernel, read_tensors(inputs))
        returned = kernel(*args)
        got = listed(returned)
        if outputs is not None:
            write_tensors(Path(outputs), [*args, *got])
        if expected is not None:
            compare_results(before, args, got, read_tensors(expected), tolerances)
        return {"outputs": len(got)}

    def time(
        self,
        job: str,
        inputs: str,
        warmup: float,
        rep: float,
        most: float | None = None,
        fewest: int = 3,
    ) -> dict[str, Any]:
        """Return milliseconds of single calls of a candidate; on GPUs of the GPU alone.

        Calls are timed for `rep` milliseconds after `warmup`, `fewest` of them at least; one of
        more than `most` needs no second: it is far too slow anyway.
        """
        run = self._run(job, inputs)
        if _is_on_gpu(self._kernel(job)):
            from tile_api.timing.bench import do_bench

            found = do_bench(
                run, warmup, rep, return_mode="all", device="cuda", early_stop_baseline=most
            )
            return {"times": [float(ms) for ms in found]}
        clock = self._clock or _clock()
        self._clock = clock
        start = clock()
        run()
        first = (clock() - start) * 1e3
        if most is not None and first > 2 * most:
            start = clock()
            run()
            return {"times": [min(first, (clock() - start) * 1e3)]}
        start = clock()
        while clock() - start < warmup / 1e3:
            run()
        times: list[float] = []
        start = clock()
        while len(times) < fewest or (clock() - start < rep / 1e3 and len(times) < _MOST_CALLS):
            began = clock()
            run()
            times.append((clock() - began) * 1e3)
        return {"times": times}

    # Inside --------------------------------------------------------------------------------

    def _kernel(self, job: str) -> Any:
        if job not in self._kernels:
            self._kernels[job] = Job.read(job).compiled()
        return self._kernels[job]

    def _run(self, job: str, inputs: str) -> Callable[[], object]:
        """Return what launches a candidate without checks."""
        if (job, inputs) not in self._runs:
            kernel = self._kernel(job)
            if inputs not in self._shared:
                self._shared[inputs] = self._placed(kernel, read_tensors(inputs))
            while len(self._runs) >= _RUNS_KEPT:
                self._runs.popitem(last=False)
            used = {inputs, *(file for _, file in self._runs)}
            self._shared = {file: args for file, args in self._shared.items() if file in used}
            self._runs[job, inputs] = _launching(kernel, self._shared[inputs])
        self._runs.move_to_end((job, inputs))
        return self._runs[job, inputs]

    def _placed(self, kernel: Any, args: list[Any]) -> list[Any]:
        """Return arguments where the kernel runs."""
        if not _is_on_gpu(kernel):
            return args
        import numpy as np

        from tile_api.tensors import tensor_of

        return [tensor_of(a, "cuda") if isinstance(a, np.ndarray) else a for a in args]


def _is_on_gpu(kernel: Any) -> bool:
    return not kernel.target.count("@") and kernel.target.partition(":")[0] in ("cuda", "hip")


def _launching(kernel: Any, args: list[Any]) -> Callable[[], object]:
    """Return what launches a kernel without checks, on outputs of its own."""
    outputs = iter(listed(kernel(*args)))
    inputs = iter(args)
    places = {*kernel.out_idx}
    everything = [next(outputs if n in places else inputs) for n in range(len(kernel.params))]
    run: Callable[[], object] = kernel.raw(*everything)
    return run


def _clock() -> Callable[[], float]:
    """Return the clock of this process: where kernels have one thread, that thread's own.

    Other processes do not disturb it.
    """
    from tile_launch.openmp import find_openmp

    openmp = find_openmp()
    alone = openmp is not None and int(openmp.omp_get_max_threads()) == 1
    return time.thread_time if alone else time.perf_counter


def compare_results(
    before: list[Any],
    args: list[Any],
    got: list[Any],
    expected: list[Any],
    tolerances: tuple[float, float, float],
) -> None:
    """Raise `AssertionError` if results differ.

    A kernel may return its results or write them into its arguments, and so may a reference. What
    both return is compared; arguments that the reference changed have to be changed alike; what
    only the reference returns stands for the arguments that the kernel changed, in their order.
    `expected` holds the arguments after the reference ran, and then what it returned; `tolerances`
    are absolute, relative, and the share of elements that may differ.
    """
    atol, rtol, share = tolerances
    changed_there, returned = expected[: len(args)], expected[len(args) :]
    if not got and returned:
        got = [after for was, after in zip(before, args, strict=True) if _differ(was, after)]
    assert_outputs_close(got, returned, atol, rtol, share)
    for number, (was, ours, theirs) in enumerate(zip(before, args, changed_there, strict=True)):
        if _differ(was, theirs):
            assert_close(ours, theirs, atol, rtol, share, name=f"argument {number}")


def _differ(before: Any, after: Any) -> bool:
    import numpy as np

    if not isinstance(before, np.ndarray):
        return False
    array = after if isinstance(after, np.ndarray) else np.asarray(after.cpu())
    return before.tobytes() != array.tobytes()
