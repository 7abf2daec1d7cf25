"""Parallel loops on the threads the process already has."""

from __future__ import annotations


def install() -> bool:
    """Return whether parallel loops run on the process's OpenMP threads."""
    return False
