"""From tiles to threads: what CUDA and HIP machines share of lowering."""
