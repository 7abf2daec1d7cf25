"""Compilers that others made: programs, and libraries that work in a process of their own."""
