"""Passes on tile IR that only the CPU needs; each is inserted at a named point."""
