"""Calls of kernels in C: what Python checked once is not looked at by Python again."""
