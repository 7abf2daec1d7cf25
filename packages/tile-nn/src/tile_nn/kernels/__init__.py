"""The kernels: each a function of arrays in a file of its own."""
