"""What pages may count on."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _torch_knows_the_backend(request: pytest.FixtureRequest) -> None:
    """Register it where tile-api was installed before it was declared."""
    if "torch-compile" not in request.node.name:
        return
    import torch

    from tile_api.torch_compile.backend import tile_backend

    if "tile" not in torch._dynamo.list_backends():
        torch._dynamo.register_backend(tile_backend, name="tile")
