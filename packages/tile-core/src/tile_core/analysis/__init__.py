"""What is true of a program: accesses of memory, dependences, liveness, uniformity."""
