"""From tiles to threads: what all GPUs share of lowering."""
