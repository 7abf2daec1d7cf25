"""Matrix multiplications that run while the threads that started them do something else."""
