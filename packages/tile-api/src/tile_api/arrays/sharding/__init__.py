"""Functions of arrays on several machines: which dimensions may be split, told by the equations.

=====================  =========================================================================
`pieces`               what an element of a piece is beside that of the whole
`rules`                the dimensions that may be split, and why others stay whole
=====================  =========================================================================
"""
