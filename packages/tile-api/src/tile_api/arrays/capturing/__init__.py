"""What users write, as equations: arrays without elements, and functions on them.

===================  ===========================================================================
`capture`            the function, run
`array`              an array without elements: what NumPy's protocols ask of it
`element_types`      types as code of NumPy compares them
`purity`             whether a function is the same each time
`augmented_assignment`
                     ``y += 1``: another array in the place of the old one; `item_assignment`:
                     ``y[0] = 1``
`misfits`            what is told of shapes that do not fit
`numpy_names`        NumPy's functions by name; what they do is in `ufuncs`, `elementwise`, `views`,
                     `joins`, `indexing`, `sorting`, `folds`, `products`, `creation`,
                     `floating_and_rational`
`scan`               `tile.scan`; `accumulations` are NumPy's
`torch_names`        torch's functions by name: `torch_elements`, `torch_shapes`, `torch_sorting`,
                     `torch_pooling`, `torch_convolutions`; `torch_dispatch` decomposes others
`tensor_methods`     methods of tensors, which torch has beside NumPy's
===================  ===========================================================================
"""
