"""A Python program that fails as a reduced kernel does: tile IR as text, and one trial of it."""

from __future__ import annotations

import json
from typing import Any

from tile_api.reducing.failure import Outcome
from tile_api.reducing.trial import Plan
from tile_core.errors import ParseError
from tile_core.ir.equal import structurally_equal
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ops.table import OPERATORS

_PROGRAM = '''\
"""{title}

It ends with 1 as long as the kernel fails, and with 0 when it does not any more.
"""

from __future__ import annotations

{imports}
from tile_api.compiling import default_host
from tile_api.reducing.trial import Plan, try_kernel

{kernel}

PLAN = Plan(
{plan}
)

if __name__ == "__main__":
    outcome = try_kernel(kernel, PLAN, default_host())
    print(outcome.text or outcome.told())
    raise SystemExit(outcome.kind != "fine")
'''

_TEXT = '''\
KERNEL = r"""
{text}
"""

kernel = read_kernel(KERNEL)'''

_PICKLE = """\
# its layouts have no text that could be read back; kernel.tile shows them
kernel = pickle.loads(Path(__file__).with_name("kernel.pickle").read_bytes())"""


def program_of(kernel: Kernel, plan: Plan, outcome: Outcome) -> str:
    """Return a program that tries `kernel` once, and tells what becomes of it.

    It stands alone if `reads_back`; else it needs ``kernel.pickle`` beside it.
    """
    alone = reads_back(kernel)
    imports = "from tile_api.reducing.program import read_kernel"
    text = print_kernel(kernel).rstrip()
    fields = ("target", "pass_configs", "compile_flags", "until", "checked", "values", "seed")
    return (
        _PROGRAM.format(
            title=_title(kernel, plan, outcome),
            imports="import pickle\nfrom pathlib import Path\n" if not alone else "",
            kernel=_TEXT.format(text=text) if alone else _PICKLE,
            plan="\n".join(f"    {name}={getattr(plan, name)!r}," for name in fields),
        )
        .replace(
            "from tile_api.reducing.trial",
            f"{imports}\nfrom tile_api.reducing.trial" if alone else "from tile_api.reducing.trial",
            1,
        )
        .replace("annotations\n\n\nfrom", "annotations\n\nfrom")
    )


def _title(kernel: Kernel, plan: Plan, outcome: Outcome) -> str:
    told = outcome.told().replace("\\", "/").replace('"""', "'''")
    return f"{kernel.name} for {plan.target}: {told.splitlines()[0]}"


def read_kernel(text: str) -> Kernel:
    """Return the kernel whose tile IR is `text`.

    Raises
    ------
    ParseError
        If it is not what the printer writes, or holds layouts, which have no such text.
    """
    return parse_kernel(text, OPERATORS, _no_layout)


def _no_layout(text: str) -> Any:
    raise ParseError(f"the layout {text} cannot be read back", hint="take the annotation out")


def reads_back(kernel: Kernel) -> bool:
    """Tell whether the text of a kernel gives the same kernel again."""
    try:
        again = read_kernel(print_kernel(kernel))
    except Exception:  # operators of plugins, layouts, names that are keywords of the text
        return False
    return structurally_equal(again, kernel) and '"""' not in json.dumps(print_kernel(kernel))
