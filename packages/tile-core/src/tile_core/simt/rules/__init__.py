"""How machines of many threads run each operator."""
