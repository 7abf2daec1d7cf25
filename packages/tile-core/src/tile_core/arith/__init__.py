"""Integer analysis and rewriting of scalar expressions.

`interval` is the arithmetic of intervals, `congruence` that of divisors, `affine` the normal form
of sums. `interval_analysis` bounds expressions node by node; `bounds` does so within types, and
`constraints` with all that is known at a point of a kernel; `in_range` judges indices. `simplify`
rewrites by the rows of `index_rules`, `evaluate` computes.
"""
