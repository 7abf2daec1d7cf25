"""The pytest plugin of the conformance kit: the option that names the backend under test.

pytest finds it through an entry point, so that the option exists before tests are collected.
Nothing heavy is imported here.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tile-backend``."""
    parser.addoption(
        "--tile-backend",
        default=None,
        help="target whose backend must fulfil the conformance contract, or 'interpreter'",
    )


@pytest.fixture
def tile_backend(request: pytest.FixtureRequest) -> str:
    """Return the backend under test; the interpreter if none was named."""
    name: str | None = request.config.getoption("--tile-backend")
    return name or "interpreter"
