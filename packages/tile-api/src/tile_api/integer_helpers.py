"""Arithmetic on Python ints that kernel factories need."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """Return ``a / b`` rounded up.

    Examples
    --------
    >>> cdiv(7, 2)
    4
    """
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """Return the smallest power of two that is at least `x`.

    Examples
    --------
    >>> next_power_of_2(5), next_power_of_2(8), next_power_of_2(1)
    (8, 8, 1)
    """
    return 1 if x <= 1 else 1 << (x - 1).bit_length()
