"""Kernels and programs as text of the developer's tier.

===================  ===========================================================================
`kernel_text`        a kernel: sweeps, steps of states, stores; `running_means`
`tiles`, `text`      its tiles; expressions
`recurrence_text`    a kernel of steps; `chunk_text` of many, `prefix_text` of running sums
`scatter_text`       a kernel that adds where indices say
`program_text`       all kernels as a file that compares itself with NumPy: `numpy_source` and
                     `numpy_text` say what is right
===================  ===========================================================================
"""
