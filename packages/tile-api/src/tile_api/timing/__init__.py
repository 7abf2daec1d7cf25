"""How long calls take: clocks of processors and of GPUs, and what is told of many calls."""
