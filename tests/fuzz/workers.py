"""Processes that stay: each runs one program after another, until one of them ends it."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, TypeAlias

from fuzz import run as running
from fuzz.arguments import arguments
from fuzz.meaning import Invalid, expected
from fuzz.run import SECONDS, Ended, Finding, Outcome, Traced, run

Serving: TypeAlias = Callable[[Connection], None]
Running: TypeAlias = Callable[[Any, Sequence[str], float], Outcome]
PROGRAMS = 150
"""After so many a process is replaced: its memory, and what earlier programs left behind."""


class Worker:
    """A process, forked from this one, that runs programs; another one takes its place if it ends.

    Parameters
    ----------
    serving
        What it does with the programs that come through its pipe.
    alone
        Runs one in a process of its own.

    Notes
    -----
    What is wrong with a program is tried again in a process of its own, so that what is printed
    repeats it; what does not fail there is reported with the programs that ran before it.
    """

    def __init__(self, serving: Serving | None = None, alone: Running = run) -> None:
        self._serving = serving or serve
        self._alone = alone
        self._child = 0
        self._pipe: Connection | None = None
        self._noise: IO[bytes] | None = None
        self._before: list[str] = []

    def run(
        self, name: str, program: Any, targets: Sequence[str], seconds: float = SECONDS
    ) -> Outcome:
        """Run a program on the targets, and compare with what it means.

        Parameters
        ----------
        name
            Of the program, for what is said of later ones.

        Raises
        ------
        Invalid
            If it means nothing.
        """
        findings: list[Finding] = []
        spent: dict[str, float] = {}
        left = list(targets)
        while left:
            start = time.monotonic()
            for target, found in self._answers(program, tuple(left), seconds):
                if found is not None:
                    findings.append(self._again(program, found, seconds))
                left.remove(target)
                spent[target] = time.monotonic() - start
                start = time.monotonic()
        if self._pipe is not None:
            self._before.append(name)
        if len(self._before) >= PROGRAMS:
            self.close()
        return Outcome(tuple(findings), spent)

    def _answers(self, program: Any, targets: tuple[str, ...], seconds: float) -> Any:
        """Yield each target, and what is wrong there, until the process ends."""
        if self._pipe is None:
            self._start()
        assert self._pipe
        self._pipe.send((program, targets))
        for target in targets:
            if not self._pipe.poll(seconds):
                yield target, self._ended(target, hangs=True)
                return
            try:
                found = self._pipe.recv()
            except EOFError:
                yield target, self._ended(target, hangs=False)
                return
            if isinstance(found, Invalid):
                raise found
            yield target, found

    def _again(self, program: Any, found: Finding, seconds: float) -> Finding:
        """Return what is wrong with the program alone, or what is wrong after others."""
        for alone in self._alone(program, [found.target], seconds).findings:
            return alone
        detail = f"{found.detail}\nAlone it is right; before it ran {', '.join(self._before)}"
        return Finding(found.target, found.kind, f"{found.what}, after others", detail)

    def _start(self) -> None:
        ours, theirs = Pipe()
        self._noise = tempfile.TemporaryFile()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._child = os.fork()
        if self._child == 0:
            os.setpgid(0, 0)
            faulthandler.disable()
            for stream in (1, 2):
                os.dup2(self._noise.fileno(), stream)
            ours.close()
            try:
                self._serving(theirs)
            except EOFError:
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        theirs.close()
        self._pipe = ours

    def _ended(self, target: str, *, hangs: bool) -> Finding:
        """Return how the process ended while it ran a program on `target`."""
        assert self._noise
        if hangs:
            os.killpg(self._child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        self._noise.seek(0)
        ended = Ended.of(status, self._noise.read(), hangs=hangs)
        self._forget()
        return Finding(target, ended.kind, ended.what, ended.said)

    def _forget(self) -> None:
        assert self._pipe
        assert self._noise
        self._pipe.close()
        self._noise.close()
        self._pipe, self._before = None, []

    def close(self) -> None:
        """End the process."""
        if self._pipe is not None:
            os.killpg(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._forget()


def serve(pipe: Connection) -> None:
    """Run the programs that come through a pipe, and send what is wrong with each."""
    # Nothing of what was there before is ever garbage: looking through it takes long.
    gc.freeze()
    gc.disable()
    while True:
        program, targets = pipe.recv()
        try:
            given = arguments(program)
            right = expected(program, given)
        except Invalid as why:
            pipe.send(why)
            continue
        traced = Traced(program)
        for target in targets:
            pipe.send(running.one(program, target, given, right, traced))
        del traced
        gc.collect()
