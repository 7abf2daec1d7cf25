"""C++ text of device programs: one source for every GPU and the emulator."""

from tile_core.codegen.program import function_symbols, print_program
from tile_core.codegen.source import PrintedSource

__all__ = ["PrintedSource", "function_symbols", "print_program"]
