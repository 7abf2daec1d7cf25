"""Machine code as text: SASS by NVIDIA's disassemblers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tile_core.errors import ToolchainError

_HINT = "pip install 'tile-api[inspect]'"
_TIMEOUT_SECONDS = 120
INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?U?P(?:T|\d+)\s+)?(?P<opcode>[A-Z][\w.]*)", re.MULTILINE
)


def sass(cubin: bytes) -> str:
    """Return the machine code of all kernels in `cubin` as text.

    ``cuobjdump`` and ``nvdisasm`` are looked for in the packages of this Python, in
    ``CUDA_HOME`` and in ``PATH``.

    Raises
    ------
    ToolchainError
        If neither is installed, or none reads this architecture.
    """
    words = []
    for command, options in (("cuobjdump", ["-sass"]), ("nvdisasm", ["-c"])):
        for tool in _tools(command):
            done = _run(tool, options, cubin)
            if done.returncode == 0 and INSTRUCTION.search(done.stdout):
                return done.stdout
            words.append(f"{command}: {(done.stderr or done.stdout).strip()}")
    if not words:
        raise ToolchainError(
            "reading machine code needs cuobjdump or nvdisasm, and neither is installed", hint=_HINT
        )
    raise ToolchainError(
        "the machine code could not be read:\n" + "\n".join(words),
        hint="disassemblers forget old architectures: put a cuobjdump of their time in PATH",
    )


def _tools(command: str) -> Iterator[Path]:
    folders = [
        folder
        for entry in sys.path
        for folder in sorted(Path(entry, "nvidia").glob("*/bin"), reverse=True)
    ]
    folders += [Path(root, "bin") for root in (os.environ.get("CUDA_HOME"),) if root]
    yield from (folder / command for folder in folders if (folder / command).is_file())
    in_path = shutil.which(command)
    if in_path:
        yield Path(in_path)


def _run(tool: Path, options: list[str], cubin: bytes) -> subprocess.CompletedProcess[str]:
    """Run a disassembler on a copy of the code; files of wheels may not be executable."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder, "kernel.cubin")
        code.write_bytes(cubin)
        program = tool
        if not os.access(tool, os.X_OK):
            program = Path(shutil.copy(tool, folder))
            program.chmod(0o700)
            _link_siblings(tool, Path(folder))
        return subprocess.run(
            [str(program), *options, str(code)],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )


def _link_siblings(tool: Path, folder: Path) -> None:
    """``cuobjdump`` calls ``nvdisasm``, which must lie beside it."""
    for sibling in tool.parent.iterdir():
        if sibling.name != tool.name and sibling.name in ("nvdisasm", "cuobjdump"):
            copy = Path(shutil.copy(sibling, folder))
            copy.chmod(0o700)
