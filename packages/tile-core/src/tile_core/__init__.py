"""The compiler behind the tile language: IR, operators, passes, plugin host."""
