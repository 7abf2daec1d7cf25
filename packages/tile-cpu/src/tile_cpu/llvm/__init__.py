"""LLVM functions written by small Python programs: exact float semantics, no TVM algebra."""
