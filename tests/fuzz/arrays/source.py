"""A random function as Python that runs."""

from __future__ import annotations

from fuzz.arrays.fillings import arguments
from fuzz.arrays.program import Program


def reproduction(program: Program, target: str) -> str:
    """Return the function with its arguments, run on a target."""
    machine, _, how = target.partition("/")
    given = [f'        np.array({x.tolist()!r}, "{x.dtype}"),' for x in arguments(program)]
    small = [line if len(line) < 2000 else "        ...," for line in given]
    kinds = ", ".join(f"{a.dtype}{list(a.shape)} {a.filling}" for a in program.arguments)
    blocks = "Blocks(resident=0)" if how else "Blocks()"
    call = (
        "print(Function(f).interpret(*given))"
        if target == "equations"
        else f"print(Function(f, target={machine!r}, blocks={blocks})(*given))"
    )
    return (
        f"# arguments: {kinds}\n{program.text}\nif __name__ == '__main__':\n"
        "    from numpy import inf, nan\n"
        "    from tile_api.arrays.function import Function\n"
        "    from tile_api.arrays.planning.plan import Blocks\n\n    given = (\n"
        + "\n".join(small)
        + f"\n    )\n    {call}\n    print(f(*given))\n"
    )
