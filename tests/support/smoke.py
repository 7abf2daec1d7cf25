"""The sample of all tests that ``nox -s smoke`` runs: those with the marker `smoke`."""

from __future__ import annotations

import fnmatch
from functools import cache
from pathlib import Path
from zlib import crc32

TESTS = Path(__file__).parents[1]

SMOKE: dict[str, int] = {
    "architecture/test_error_codes.py": 1,
    "architecture/test_sizes.py": 8,
    "conformance/test_conformance.py": 90,
    "errors/*": 8,
    "examples/test_examples.py": 20,
    "golden/*": 3,
    "language/test_section_*": 25,
    "property/test_layout_*": 4,
    "protocol/test_mistakes.py": 10,
    "tilelang/*": 8,
    "tools/*": 2,
    "unit/tile_api/test_[a-j]*": 12,
    "unit/tile_core/*": 25,
    "unit/tile_cpu/test_[a-l]*": 25,
    "unit/tile_cuda/test_[a-g]*": 25,
    "unit/tile_hip/test_[a-g]*": 25,
    "unit/tile_launch/*": 6,
    "unit/tile_sim/test_[a-e]*": 12,
}
"""By pattern of files: every how many tests one is run. Which one depends on its name alone."""


@cache
def share_of(path: Path) -> int:
    """Return every how many tests of the file `path` one is in the sample; 0: none."""
    if TESTS not in path.parents:
        return 0
    name = path.relative_to(TESTS).as_posix()
    return next((n for pattern, n in SMOKE.items() if fnmatch.fnmatch(name, pattern)), 0)


def is_smoke(path: Path, name: str) -> bool:
    """Tell whether the test `name` of the file `path` is in the sample."""
    share = share_of(path)
    return share > 0 and crc32(f"{path.name}::{name}".encode()) % share == 0
