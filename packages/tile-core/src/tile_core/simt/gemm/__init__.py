"""Matrix multiplications on machines of many threads: by matrix instructions, or without them."""
