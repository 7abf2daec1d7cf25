"""A Python program that fails as a reduced kernel does: tile IR as text, and one trial of it."""

from __future__ import annotations

from typing import Any

from tile_api.reducing.failure import RunOutcome
from tile_api.reducing.trial import Plan
from tile_core.errors import ParseError
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.structural_equality import structurally_equal
from tile_core.plugins.host import installed_plugins

_PROGRAM = '''\
"""{title}

It ends with 1 as long as the kernel fails, and with 0 when it does not any more.
"""

{kernel}

PLAN = Plan(
{plan}
)

if __name__ == "__main__":
    outcome = try_kernel(kernel, PLAN, default_host())
    print(outcome.text or outcome.told())
    raise SystemExit(outcome.kind != "fine")
'''

_LANGUAGE = """\
from dataclasses import replace

from tile_core.plugins.host import default_host
from tile_api.reducing.trial import Plan, try_kernel
{text}

kernel = replace({name}.kernel, outputs={outputs})"""

_TEXT = '''\
from tile_core.plugins.host import default_host
from tile_api.reducing.program import read_kernel
from tile_api.reducing.trial import Plan, try_kernel

KERNEL = r"""
{text}
"""

kernel = read_kernel(KERNEL)'''

_PICKLE = """\
import pickle
from pathlib import Path

from tile_core.plugins.host import default_host
from tile_api.reducing.trial import Plan, try_kernel

# its layouts have no text that could be read back; kernel.tile shows them
kernel = pickle.loads(Path(__file__).with_name("kernel.pickle").read_bytes())"""

_FIELDS = (
    "target", "pass_configs", "compile_flags", "until", "checked", "values", "seed", "tolerance"
)  # fmt: skip


def program_of(kernel: Kernel, plan: Plan, outcome: RunOutcome, language: str | None = None) -> str:
    """Return a program that tries `kernel` once, and tells what becomes of it.

    It holds the kernel in the language if that is given, else its tile IR if that `reads_back`, and
    loads ``kernel.pickle`` beside it if not.
    """
    if language is not None:
        text = _LANGUAGE.format(text=language, name=kernel.name, outputs=kernel.outputs)
    elif reads_back(kernel):
        text = _TEXT.format(text=print_kernel(kernel).rstrip())
    else:
        text = _PICKLE
    told = outcome.told().replace("\\", "/").replace('"""', "'''").splitlines()[0]
    return _PROGRAM.format(
        title=f"{kernel.name} for {plan.target}: {told}",
        kernel=text,
        plan="\n".join(f"    {name}={getattr(plan, name)!r}," for name in _FIELDS),
    )


def read_kernel(text: str) -> Kernel:
    """Return the kernel whose tile IR is `text`.

    Raises
    ------
    ParseError
        If it is not what the printer writes, or holds layouts, which have no such text.
    """
    return parse_kernel(text, installed_plugins().operators(), _no_layout)


def _no_layout(text: str) -> Any:
    raise ParseError(f"the layout {text} cannot be read back", hint="take the annotation out")


def reads_back(kernel: Kernel) -> bool:
    """Tell whether the text of a kernel gives the same kernel again."""
    try:
        again = read_kernel(print_kernel(kernel))
    except Exception:  # operators of plugins, layouts, names that are keywords of the text
        return False
    return structurally_equal(again, kernel)
