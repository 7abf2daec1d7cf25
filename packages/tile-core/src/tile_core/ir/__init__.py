"""Tile IR: immutable nodes for kernels, statements and scalar expressions. No TVM here."""
