"""When copies and products of a kernel run: found by acting out its program."""
