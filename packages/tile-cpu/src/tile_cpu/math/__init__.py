"""Vector and scalar mathematics, number conversions and horizontal reductions.

The functions are Python programs that write LLVM IR (`tile_cpu.llvm.builder`); TIR calls them by
name. They know nothing of tile IR.
"""
