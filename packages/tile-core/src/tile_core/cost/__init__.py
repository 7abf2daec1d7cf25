"""What a kernel will cost, told without running it: counts of its work, and models of machines."""
