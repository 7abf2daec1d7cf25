"""Programs of others, run through the alias of TileLang, each in a process of its own."""
