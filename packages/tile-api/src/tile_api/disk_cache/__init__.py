"""Compiled kernels on disk: found by compile key, safe among processes, never in the way."""

from __future__ import annotations

from tile_api.disk_cache.location import CacheSettings
from tile_api.disk_cache.store import DiskCache, disk_cache

__all__ = ["CacheSettings", "DiskCache", "disk_cache"]
