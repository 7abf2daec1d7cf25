"""What AMD's assemblers say of instructions that tests have written by hand."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from support.toolchain import clang_for


def complaints(arch: str, texts: Sequence[str]) -> list[str]:
    """Return what an assembler for `arch` does not accept; skip where there is none.

    Labels of one text are not those of another.
    """
    clang = clang_for(arch)
    own = [re.sub(r"(\.L\d+)", rf"\1_{i}", text) for i, text in enumerate(texts)]
    lines = "\n".join(own) + "\n"
    options = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}")
    done = subprocess.run(
        (*clang.command, *options, "-c", "-", "-o", "/dev/null"),
        input=lines, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return re.findall(r"error: .*\n.*", done.stderr)
