"""How the CPU runs each operator: one file per family, fast rules above the serial one."""
