"""Integer analysis and rewriting of scalar expressions.

`interval` is the arithmetic of intervals, `affine` the normal form of sums, `constraints` what is
known at a point of a kernel and what follows from it, `bounds` finite bounds within element types,
`simplify` rewrites by rules, `evaluate` computes.
"""
