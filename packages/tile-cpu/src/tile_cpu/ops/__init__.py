"""Operators that CPU passes introduce; users never write them."""
