"""Runs one program of others, or the tests in it, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.peers.peers_recorder import EVENTS, FOLDER, LEFT_OUT

KEPT = 6000
"""Characters of what a program printed that are kept."""
ALIAS = ("-m", "tile_api.cli", "run", "--as-tilelang", "--target")
NO_TESTS_LEFT = 5
PAUSE = 0.2
PATIENCE = 10
"""How many times longer than its processor time a program may take."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program, or of one test in it.

    Attributes
    ----------
    outcome
        ``passed``, ``skipped`` by the program itself, ``left out`` by the list, ``failed``,
        ``timeout`` or ``died``; ``done`` ends a file whose tests have lines of their own.
    """

    file: str  # path below the folder of programs
    test: str  # name of a test with its parameters, or ""
    outcome: str
    reason: str = ""  # in a line
    seconds: float = 0.0  # how long it took
    output: str = ""  # the end of what was printed, where it went wrong


@dataclass(frozen=True, slots=True)
class Conditions:
    """How programs are run: where, and within which limits.

    Attributes
    ----------
    timeout
        Seconds of processor time for a program or a test, and ten times as many on the clock:
        what a busy machine takes longer for is no failure.
    """

    folder: Path  # of the programs
    target: str  # where kernels run
    timeout: float
    memory: int  # GiB that a process may have

    def run(self, file: str, left_out: Mapping[str, str]) -> Iterator[Outcome]:
        """Run a file, and yield what became of it, or of its tests and then that it is done.

        Parameters
        ----------
        file
            Path below the folder.
        left_out
            Reasons by names of tests that are not run; ``""`` is the whole file.
        """
        if "" in left_out:
            yield Outcome(file, "", "left out", left_out[""])
        elif Path(file).name.startswith("test_"):
            whole = False
            for outcome in self._tests(file, left_out):
                whole = whole or not outcome.test
                yield outcome
            if not whole:  # else the file has an outcome already: it cannot be imported
                yield Outcome(file, "", "done")
        else:
            yield self._script(file)

    def _script(self, file: str) -> Outcome:
        """Run a program as users do."""
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            with self._started([*ALIAS, self.target, str(self.folder / file)], scratch) as process:
                clock = _Clock(process.pid)
                while (status := process.poll()) is None:
                    if clock.over(self.timeout):
                        reason = f"after {self.timeout:g} s"
                        return Outcome(file, "", "timeout", reason, self.timeout, _printed(scratch))
                    time.sleep(PAUSE)
            seconds = round(clock.spent, 1)
            if status == 0:
                return Outcome(file, "", "passed", seconds=seconds)
            text = _printed(scratch)
        reason = _error(text) or f"status {status}"
        return Outcome(file, "", "died" if status < 0 else "failed", reason, seconds, text)

    def _tests(self, file: str, left_out: Mapping[str, str]) -> Iterator[Outcome]:
        """Run the tests of a file; go on behind one that hangs or ends the process."""
        not_run = dict(left_out)
        while True:
            last = None
            for last in self._tests_once(file, not_run):
                not_run[last.test] = ""
                yield last
            if last is None or not last.test or last.outcome not in ("timeout", "died"):
                return

    def _tests_once(self, file: str, not_run: Mapping[str, str]) -> Iterator[Outcome]:
        """Run tests until one hangs or ends the process, which is then the last."""
        command = ["-m", "pytest", "-p", "tile_api.tilelang.plugin", "-p", "peers_recorder"]
        command += ["-p", "no:cacheprovider", "-q", "-c", os.devnull, "--tb=short"]
        command += [f"--tile-target={self.target}", str(self.folder / file)]
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            (scratch / EVENTS).touch()
            (scratch / LEFT_OUT).write_text(json.dumps(not_run), encoding="utf-8")
            with self._started([*command, f"--rootdir={scratch}"], scratch) as process:
                running, seen, clock = "", 0, _Clock(process.pid)
                while True:
                    status = process.poll()
                    events = _lines(scratch / EVENTS)[seen:]
                    for event in events:
                        running = event["test"] if event["outcome"] == "started" else ""
                        if not running:
                            yield Outcome(file, **event)
                    if events:
                        seen, clock = seen + len(events), _Clock(process.pid)
                    if status is not None:
                        break
                    if clock.over(self.timeout):
                        reason = f"after {self.timeout:g} s"
                        yield Outcome(file, running, "timeout", reason, self.timeout)
                        return
                    time.sleep(PAUSE)
            text = _printed(scratch)
        if running:
            yield Outcome(file, running, "died", f"status {status}", 0.0, text)
        elif not seen and status not in (0, NO_TESTS_LEFT):
            yield Outcome(file, "", "failed", _error(text) or f"status {status}", 0.0, text)

    @contextmanager
    def _started(self, command: list[str], scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Start Python in a folder that is thrown away; end it and all that it started."""
        paths = (Path(__file__).parent, self.folder, os.environ.get("PYTHONPATH", ""))
        variables = {
            "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            FOLDER: str(scratch),
        }
        with (scratch / "output.txt").open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, *command],
                cwd=scratch,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self._limit,
            )
        try:
            yield process
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended, and all it started
            process.wait()

    def _limit(self) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (self.memory << 30, self.memory << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Clock:
    """How much time a process, and what it waited for, has spent since now."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.since = time.monotonic()
        self.before = self.spent = 0.0
        self.before = self._processor()

    def over(self, seconds: float) -> bool:
        """Tell whether more than `seconds` were spent."""
        self.spent = self._processor() - self.before
        return self.spent > seconds or time.monotonic() - self.since > PATIENCE * seconds

    def _processor(self) -> float:
        """Return seconds of processor time, its own and those of its children that ended."""
        try:
            fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return self.before + self.spent
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _lines(path: Path) -> list[dict[str, str]]:
    """Return the whole lines of a file that is being written."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _printed(scratch: Path) -> str:
    """Return the end of what a program printed."""
    return (scratch / "output.txt").read_text(encoding="utf-8", errors="replace")[-KEPT:]


_ERROR = re.compile(
    r"^(?:E +)?((?:[a-z_]\w*\.)+[A-Z]\w*: .*|\w*(?:Error|Exception)\b.*|\[TL\d{4}\].*)", re.M
)


def _error(text: str) -> str:
    """Return the last line that names an exception, or what pytest says of one."""
    found = _ERROR.findall(text)
    return found[-1][:500] if found else ""
