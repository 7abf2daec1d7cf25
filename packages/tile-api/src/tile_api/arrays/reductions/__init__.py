"""Which reductions that depend on each other are one loop, and how their states are corrected.

Let ``d`` stand for the running values of earlier reductions over the same variable, and
``a(d)`` for the fold of ``e(x, d)`` over the elements ``x`` that were met. A block of elements
changes ``d`` to ``d'``; the accumulator must become ``a(d')`` without the elements:

=============  ===================================  ===========================================
rule           applies                              correction
=============  ===================================  ===========================================
`independent`  ``e`` has no ``d``                   none
`hoist`        ``g(x) h(d)``; ``x + h(d)`` of max   none: ``h`` is applied to the result
`scaling`      ``g(x) exp(h(d))``                   times ``exp(h(d') - h(d))``
`extremum`     ``where(x == d, y, identity)``       the identity if ``d`` has changed
`shift`        a polynomial in ``d``                its Taylor series about ``d``
another sweep  always                               none: ``d`` is final
=============  ===================================  ===========================================

The same correction merges the states of two parts of a row. No rule is about softmax, or about
attention: see `derive`.
"""
