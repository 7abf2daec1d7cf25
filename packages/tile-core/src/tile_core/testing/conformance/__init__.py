"""The contract every backend fulfils: operators × element types × shapes.

Run it against a backend with
``pytest --pyargs tile_core.testing.conformance --tile-backend=toy``.
"""
