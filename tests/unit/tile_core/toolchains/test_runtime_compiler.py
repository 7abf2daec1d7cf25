"""Run-time compilers in processes of their own, against a library that misbehaves when asked to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.stub_hiprtc import build_stub
from tile_core.errors import ToolchainCrash, ToolchainError
from tile_core.toolchains import runtime_compiler, subprocesses
from tile_core.toolchains.runtime_compiler import RuntimeCompiler


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("stub")) / "libhiprtc.so"


@pytest.fixture
def compiler(library: Path) -> RuntimeCompiler:
    return RuntimeCompiler("hiprtc", (library,))


def compiled(compiler: RuntimeCompiler, text: str = "fine") -> int:
    """Compile `text`; return the number of the process that did."""
    log, parts = compiler.compile(
        text, "kernel.hip", ("-x",), {"a.h": ""}, ("Code",), name="stub 1"
    )
    assert parts == {"Code": b""}
    return int(log.split()[0])


def raised(compiler: RuntimeCompiler, text: str) -> str:
    with pytest.raises(ToolchainCrash) as caught:
        compiled(compiler, text)
    return caught.value.message


def test_a_process_is_kept(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    assert first != os.getpid()
    assert compiled(compiler) == first
    assert compiler.facts() == ((), ())


def test_a_crash_is_an_error(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    assert raised(compiler, "crash") == "stub 1 crashed (SIGSEGV)"
    assert compiled(compiler) != first


def test_who_leaves_is_told_with_what_it_said(compiler: RuntimeCompiler) -> None:
    assert raised(compiler, "leave") == "stub 1 crashed (status 3):\nI leave"


def test_what_does_not_end_is_ended(
    library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (runtime_compiler, subprocesses):
        monkeypatch.setattr(module, "TIME_LIMIT", 1)
    other = tmp_path / "other.so"  # whose process gets the limit
    other.write_bytes(library.read_bytes())
    compiler = RuntimeCompiler("hiprtc", (other,))
    assert raised(compiler, "hang") == "stub 1 did not come to an end within 1 s"
    compiled(compiler)


def test_prints_do_not_mix_with_replies(compiler: RuntimeCompiler) -> None:
    assert compiled(compiler, "print") == compiled(compiler, "print")


def test_a_failure_keeps_the_process(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    with pytest.raises(ToolchainError, match="stub 1 failed: HIPRTC_ERROR_INTERNAL"):
        compiled(compiler, "fail")
    assert compiled(compiler) == first


def test_a_process_that_somebody_ended_is_replaced(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    os.kill(first, signal.SIGKILL)
    while runtime_compiler._waiting[compiler][0].is_alive():
        time.sleep(0.01)
    assert compiled(compiler) != first


def test_an_interrupt_ends_it(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    here = threading.get_ident()
    timer = threading.Timer(0.3, signal.pthread_kill, (here, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(compiler, "hang")
    timer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    compiled(compiler)


def test_threads_have_processes_of_their_own(compiler: RuntimeCompiler) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.extend(compiled(compiler) for _ in range(5)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30
    assert len(runtime_compiler._waiting[compiler]) <= runtime_compiler._KEPT


def test_a_fork_has_its_own(compiler: RuntimeCompiler) -> None:
    first = compiled(compiler)
    child = os.fork()
    if child == 0:
        os._exit(compiled(compiler) == first)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compiled(compiler) == first


def test_it_ends_with_who_started_it(library: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from tile_core.toolchains.runtime_compiler import RuntimeCompiler
compiler = RuntimeCompiler("hiprtc", (Path({str(library)!r}),))
print(compiler.compile("fine", "kernel.hip", (), {{}}, (), name="it")[0].split()[0], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    worker = int(done.stdout)
    for _ in range(500):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("it is still there")
