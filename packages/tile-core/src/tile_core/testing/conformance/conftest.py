"""The option that names the backend under test."""

from __future__ import annotations

import pytest

from tile_core.testing.oracle import INTERPRETER


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tile-backend``."""
    parser.addoption(
        "--tile-backend",
        default=INTERPRETER,
        help="target whose backend must fulfil the contract, or 'interpreter' (the default)",
    )


@pytest.fixture
def tile_backend(request: pytest.FixtureRequest) -> str:
    """Return the backend under test."""
    name: str = request.config.getoption("--tile-backend")
    return name
