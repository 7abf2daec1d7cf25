"""How the CPU runs each tile operator: one file per family."""
