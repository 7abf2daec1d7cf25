"""Many tasks on an executor that the user brings: results as they come, lost ones again.

The executor may be any `concurrent.futures.Executor`: processes of this machine, a cluster of Dask,
ranks of MPI. Nothing is asked of it but `submit`. A task is a function of plain data that can be
pickled and may run twice; what it raises is its answer. A future that fails otherwise tells of a
worker that is gone, and the task is given out again.

A pool of processes of which one was killed fails with all tasks that it has. Which of them did it
is not told: fewer are given out at a time then, down to one, which is blamed if it ends so again.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import suppress
from typing import Any, Generic, TypeVar

from tile_core.errors import FrontendTypeError, ToolchainCrash
from tile_core.records import dataclass

Task = TypeVar("Task")
Result = TypeVar("Result")

Executors = Executor | Callable[[], Executor]
"""An executor, or a function that makes one: another one takes the place of one that is broken."""

TRIES = 3
"""So often a task is given out whose worker is lost each time, with no other task to blame."""

AHEAD = 1024
"""So many tasks are given out at most before results are taken."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """What became of a task, by its number: what it returned, or raised."""

    number: int
    value: Result | None = None
    error: BaseException | None = None

    def result(self) -> Result:
        """Return what the task returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def checked_executor(executor: object) -> Executors:
    """Return an executor, or a function that makes one."""
    if isinstance(executor, Executor) or callable(executor):
        return executor
    raise FrontendTypeError(
        f"an executor of tasks is a {type(executor).__name__}",
        hint="pass a concurrent.futures.Executor, such as ProcessPoolExecutor() or "
        "dask.distributed.Client().get_executor(); or a function that makes one",
    )


def completed(
    executor: Executors,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    ahead: int = AHEAD,
) -> Iterator[Answer[Result]]:
    """Yield what becomes of tasks, in the order in which they come to an end.

    Parameters
    ----------
    executor
        It stays open. A function makes one, which is closed at the end, and makes another one where
        that is broken, as a pool of processes is of which one was killed.
    tasks
        They may come one by one and without end: no more than `ahead` of them are given out.

    Notes
    -----
    Where an executor that was passed itself is broken, a process of this machine does the rest.
    The answer of a task that ends all of its workers is a `ToolchainCrash`.
    """
    with _Pool(checked_executor(executor)) as pool:
        left: deque[tuple[int, Task]] = deque()
        given = dict[Future[Any], tuple[int, Task, bool]]()
        losses, more, most = Counter[int](), enumerate(tasks), ahead
        try:
            while True:
                while len(given) < most and (item := _next(left, more)) is not None:
                    given[pool.submit(function, item[1])] = (*item, most == 1)
                if not given:
                    return
                for future in wait(given, return_when=FIRST_COMPLETED).done:
                    count = len(given)
                    number, task, is_alone = given.pop(future)
                    lost = _loss_of(future)
                    if lost is None:
                        most = min(ahead, most + 1)
                        yield Answer(number, *future.result())
                        continue
                    is_broken = isinstance(lost, BrokenExecutor)
                    most = max(1, min(most, count) // 2) if is_broken else most
                    losses[number] += is_alone or not is_broken
                    if losses[number] < TRIES:
                        left.append((number, task))
                        continue
                    told = f"task {number} ends each process that runs it: {_told(lost)}"
                    yield Answer(number, error=ToolchainCrash(told))
        finally:
            for future in given:
                future.cancel()


def in_order(answers: Iterable[Answer[Result]]) -> Iterator[Answer[Result]]:
    """Yield answers in the order of their tasks, each as soon as all before it are there."""
    waiting: dict[int, Answer[Result]] = {}
    due = 0
    for answer in answers:
        waiting[answer.number] = answer
        while (one := waiting.pop(due, None)) is not None:
            due += 1
            yield one


def results_of(
    executor: Executors, function: Callable[[Task], Result], tasks: Iterable[Task]
) -> list[Result]:
    """Return the results of tasks, in their order; raise what the first one raises that fails."""
    return [answer.result() for answer in in_order(completed(executor, function, tasks))]


class _Pool:
    """An executor in whose place comes another one when it is broken."""

    def __init__(self, executor: Executors) -> None:
        self._is_given = isinstance(executor, Executor)
        self._make = _one_process if isinstance(executor, Executor) else executor
        self._now = executor if isinstance(executor, Executor) else executor()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_given:
            self._now.shutdown(wait=False)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Give a task out."""
        try:
            return self._now.submit(_answered, function, task)
        except RuntimeError:  # it is broken, or closed
            with suppress(Exception):
                self._now.shutdown(wait=False)
        self._now, self._is_given = self._make(), False
        return self._now.submit(_answered, function, task)


def _one_process() -> Executor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _next(left: deque[Any], more: Iterator[Any]) -> Any:
    """Return what to give out next: what was lost before what is new."""
    return left.popleft() if left else next(more, None)


def _answered(function: Callable[[Any], Any], task: Any) -> tuple[Any, BaseException | None]:
    """Run a task where it was sent: what it raises is an answer, too."""
    try:
        return function(task), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return None, RuntimeError(_told(error))
        return None, error


def _loss_of(future: Future[Any]) -> BaseException | None:
    """Return how a task was lost; None if there is an answer."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
