"""Producers and consumers: ranges of a block's threads with work of their own."""
