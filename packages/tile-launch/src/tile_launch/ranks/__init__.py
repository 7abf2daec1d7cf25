"""Kernels across the ranks of a group: memory that all ranks share, meetings, failures.

The copies that the ranks have of a tensor lie side by side in each of their address spaces.
"""
