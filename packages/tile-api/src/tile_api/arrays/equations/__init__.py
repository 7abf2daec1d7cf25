"""Equations: expressions over index variables, what they mean, and how they are rewritten.

===================  ===========================================================================
`equations`          what a function computes: arrays that it takes, equations of what it returns
`expressions`        interned scalar expressions; `recurrence` of what is carried from step to step
`evaluate`           their meaning, with NumPy
`dims`, `places`     dimensions with names; lines of the user
`substitution`       other expressions for index variables; `index_splitting`; `aligned`: one
                     name for what reductions over one dimension bind
`numerics`           how exactly functions are computed; `quotients` by numbers
`listing`            equations as lines of text, and their digest
===================  ===========================================================================
"""
