"""From a Python function to tile IR: rewrite its syntax tree, then run it as a tracer."""
