"""What machine code tells before it runs: registers, spills, what fits, instructions of loops."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from machine_loops import PRODUCTS, loop_of_products

from tile_launch.bundle import read_bundle


def facts_of(kernel: Any, bundle: Path) -> dict[str, Any]:
    """Return facts about a compiled kernel, as JSON has them.

    Parameters
    ----------
    kernel
        What `tile.compile` returns, for a GPU.
    bundle
        The file that it was saved to.
    """
    needs = next(iter(kernel.resources.values()))
    code = kernel.sass
    loop = loop_of_products(code)
    counts = Counter(re.split(r"[\s.]", text)[0] for text in loop)
    resident = needs.resident
    launch = read_bundle(bundle).variants[0].manifest.launches[0]
    return {
        "registers": needs.registers,
        "spilled_bytes": needs.spill_stores + needs.spill_loads,
        "stack_bytes": needs.stack_bytes,
        "blocks": None if resident is None else resident.blocks,
        "limited_by": None if resident is None else resident.limit,
        "shared_bytes": launch.shared_bytes,
        "threads": launch.block[0],
        "remarks": [f"{code}: {text}" for code, text in needs.remarks],
        "notes": [r.message for r in kernel.remarks("missed")],
        "loop": len(loop),
        "products": {name: counts[name] for name in PRODUCTS if counts[name]},
        "bulk_copies": len(re.findall(r"\b(?:UTMALDG|UBLKCP)\b", code)),
        "warpgroup_products": len(re.findall(r"\b[HQI]GMMA\b", code)),
        "local": counts["LDL"] + counts["STL"],
    }


def complaints(facts: dict[str, Any], family: str) -> list[str]:
    """Return what is wrong with a configuration, in a few words each."""
    found = []
    if facts["spilled_bytes"] or facts["local"]:
        found.append(f"spills {facts['spilled_bytes']} bytes")
    found += [remark.partition(":")[0] for remark in facts["remarks"]]
    if any(note.startswith("no producer warps") for note in facts["notes"]):
        found.append("no producers")
    is_product = family not in ("copy", "softmax", "rms_norm", "layer_norm")
    if is_product and not facts["bulk_copies"]:
        found.append("no bulk copies")
    if is_product and not facts["warpgroup_products"]:
        found.append("no warpgroup products")
    return found
