"""What one compilation is made of; `tile_core.driver` runs it."""
