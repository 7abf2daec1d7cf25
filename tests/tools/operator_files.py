"""The files that ``docs/how-to/add-an-operator.md`` touches where a test executes it."""

from __future__ import annotations

OPERATOR = "packages/tile-core/src/tile_core/ops/scaled_add.py"
TABLE = "packages/tile-core/src/tile_core/ops/operator_table.py"
REFERENCE = "docs/reference/operators.md"
CHANGELOG = "CHANGELOG.md"

TOUCHED = (OPERATOR, TABLE, REFERENCE, CHANGELOG)
