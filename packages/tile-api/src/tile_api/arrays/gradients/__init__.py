"""Gradients: adjoints of equations, and functions run forwards and backwards.

=====================  =========================================================================
`adjoint`              equations of gradients: `derivatives` of functions of elements, `sums`, and
                       `index_maps` turned round, `strided_windows` by remainders
`recurrences`          those of what is carried from step to step; `decays` that elements share
`residuals`            what a forward pass saves
`passes`               a function run forwards and backwards
`captured_gradients`   the same within a function that is captured
=====================  =========================================================================
"""
