"""Guards that lowering could not do without: where they stand, and which fact would end them."""
