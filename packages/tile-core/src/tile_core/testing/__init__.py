"""What backends are tested with: building kernels, oracles, strategies, the conformance kit."""
