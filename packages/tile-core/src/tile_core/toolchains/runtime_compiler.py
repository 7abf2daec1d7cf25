"""Run-time compilers, each in processes of its own: text and options in, machine code out.

A crash of theirs, or a compilation without end, is an error of this process and not its end.
Processes start when they are needed, are kept for the next kernel, and end with this one: their
input ends. Threads that compile at the same time have one each. A fork has none.
"""

from __future__ import annotations

import atexit
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.toolchains import runtime_compiler_worker as worker
from tile_core.toolchains.subprocesses import TIME_LIMIT, crash_of

_KEPT = 4
"""Processes of one library that wait for work, each of some 100 MB."""

_FORMS = 6
"""Folders of a process with headers in compiled form, each of 15 to 65 MB."""


@dataclass(frozen=True, slots=True)
class RuntimeCompiler:
    """A library that compiles.

    `prefix` begins the names of its functions; of the files `libraries`, which are loaded, it
    is the last.
    """

    prefix: str
    libraries: tuple[Path, ...]

    def facts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return its version and the numbers of architectures, empty if it does not tell them."""
        process = _taken(self)
        _put_back(process)
        return process.facts

    def compile(
        self,
        text: str,
        file: str,
        options: Sequence[str],
        headers: Mapping[str, str],
        parts: Sequence[str],
        *,
        name: str,
        reuse: Callable[[str], Sequence[str]] | None = None,
    ) -> tuple[str, Mapping[str, bytes] | None]:
        """Compile one translation unit; return the log, and parts of the result if accepted.

        `file` is what the text is called in the log, `name` the compiler in messages, and
        `parts` what is wanted, as the library's functions name it; `headers` are texts by
        the name under which they are included. `reuse` returns options that keep what was
        read of headers in a folder, for the next text with equal options.

        Raises
        ------
        ToolchainError
            If it fails for another reason than the text: then there is no log.
        ToolchainCrash
            If it crashes, or does not come to an end.
        """
        process = _taken(self)
        process.name = name
        kept = process.kept((tuple(options), *headers.items()), reuse) if reuse else ()
        request = [text, file, (*options, *kept), dict(headers), tuple(parts)]
        try:
            kind, told, *rest = process.ask(request)
            if kept and kind == worker.REFUSED:  # perhaps the folder is gone, or full
                request[2] = tuple(options)
                kind, told, *rest = process.ask(request)
        except BaseException:  # an interrupt as well: its reply would be taken for the next one's
            process.end()
            raise
        _put_back(process)
        if kind == worker.FAILED:
            raise ToolchainError(f"{name} failed: {told}")
        return told, rest[0] if rest else None


class _Process:
    """A process that has a library loaded."""

    def __init__(self, compiler: RuntimeCompiler) -> None:
        self.compiler = compiler
        self.name = compiler.libraries[-1].name
        self._said = TemporaryFile()  # noqa: SIM115 - as long as the process lives
        self._folders: dict[tuple[object, ...], str] = {}
        command = (sys.executable, "-I", "-S", worker.__file__, compiler.prefix, str(TIME_LIMIT))
        try:
            self._process = subprocess.Popen(
                [*command, *map(str, compiler.libraries)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                start_new_session=True,  # an interrupt from the keyboard is not for it
            )
        except OSError as error:
            self._said.close()
            raise ToolchainError(f"{sys.executable} cannot be run: {error}") from error
        _started.add(self)
        try:
            kind, *facts = self._reply()
            if kind == worker.FAILED:
                raise ToolchainError(facts[0])
            version, architectures = facts
            self.facts: tuple[tuple[int, ...], tuple[int, ...]] = version, architectures
        except BaseException:
            self.end()
            raise

    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, request: list[Any]) -> Any:
        """Return the reply to a request."""
        assert self._process.stdin is not None, "it has a pipe"
        packed = marshal.dumps(request)
        with suppress(BrokenPipeError):  # the reply tells why
            self._process.stdin.write(len(packed).to_bytes(worker.LENGTH, "little") + packed)
            self._process.stdin.flush()
        return self._reply()

    def kept(self, key: tuple[object, ...], reuse: Callable[[str], Sequence[str]]) -> Sequence[str]:
        """Return the options of `reuse` for texts that are not the first with `key`.

        Each key has a folder: there is one form of the headers for each.
        """
        if key not in self._folders:
            self._folders[key] = ""  # what comes once is read once
            return ()
        if not self._folders[key]:
            made = [other for other, folder in self._folders.items() if folder]
            if len(made) == _FORMS:
                shutil.rmtree(self._folders.pop(made[0]), ignore_errors=True)
            with suppress(OSError):  # then headers are read
                self._folders[key] = mkdtemp(prefix="tile_headers_")
        return reuse(self._folders[key]) if self._folders[key] else ()

    def _reply(self) -> Any:
        assert self._process.stdout is not None, "it has a pipe"
        head = self._process.stdout.read(worker.LENGTH)
        size = int.from_bytes(head, "little")
        reply = self._process.stdout.read(size)
        if len(head) < worker.LENGTH or len(reply) < size:
            status = self._process.wait()
            self._said.seek(0)
            raise crash_of(self.name, status, self._said.read().decode(errors="replace"))
        return marshal.loads(reply)

    def end(self) -> None:
        """End it at once, whatever it does."""
        _started.discard(self)
        self._process.kill()
        self._process.wait()
        self._close()
        for folder in filter(None, self._folders.values()):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Leave it to the process that this one is a fork of."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        for stream in filter(None, (self._process.stdin, self._process.stdout, self._said)):
            with suppress(OSError):
                getattr(stream, "raw", stream).close()  # unsent bytes of a request stay unsent


_started: set[_Process] = set()
_waiting: dict[RuntimeCompiler, list[_Process]] = {}


def _taken(compiler: RuntimeCompiler) -> _Process:
    """Return a process that nobody else has."""
    waiting = _waiting.setdefault(compiler, [])
    with suppress(IndexError):
        while True:
            process = waiting.pop()
            if process.is_alive():
                return process
            process.end()  # somebody ended it while it waited
    return _Process(compiler)


def _put_back(process: _Process) -> None:
    waiting = _waiting.setdefault(process.compiler, [])
    if len(waiting) < _KEPT:
        waiting.append(process)
    else:
        process.end()


def _end_all() -> None:
    for process in tuple(_started):
        process.end()


def _forget_all() -> None:
    for process in tuple(_started):
        process.forget()
    _started.clear()
    _waiting.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
