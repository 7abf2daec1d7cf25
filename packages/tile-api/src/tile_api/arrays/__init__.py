"""The beginner's tier: functions of whole arrays, captured as equations and turned into kernels.

=======================  =======================================================================
`function`, `running`    `tile.function`, the object that users call; its kernels, which run
`given`                  what it may be called with
`capture`                the function run on arrays without elements
`annotations`            `tile.Array`: shapes and types that parameters have
`element_types`          types as code of NumPy compares them
`array`, `dims`          such an array, its dimensions, and what NumPy's protocols ask of it
`aligned`                one name for what reductions over one dimension bind
`places`, `purity`       lines of the user; whether a function is the same each time
`in_place`               ``y += 1``: another array in the place of the old one
`own_faults`             kernels that fail to be written or compiled
`misfits`                what is told of shapes that do not fit
`numpy_names`            NumPy's functions by name; what they do is in `ufuncs`, `elementwise`,
                         `views`, `joins`, `indexing`, `sorting`, `folds`, `products`, `creation`
`torch_names`            torch's functions by name: `torch_elements`, `torch_shapes`,
                         `torch_convolutions`
`recurrences`            `tile.scan`, and what is carried from step to step; `accumulations` are
                         NumPy's. `recurrence_parts` says what steps compute, `recurrence_plan`
                         and `recurrence_text` make kernels of them; those of `affine` steps go in
                         chunks, `chunk_text`, running sums of rows by tiles, `prefix_text`
`equations`, `evaluate`  scalar expressions over index variables; their meaning, with NumPy
`reductions`             which reductions that depend on each other are one loop
`partition`, `plan`      which equations are one kernel; roles of variables, sizes of blocks
`split`, `single_rows`   streams that several blocks share; products of one row
`traffic`, `blocks`      what a kernel moves, sizes of blocks by it and by the model of the machine
`deriving`, `pricing`    all of these steps; kernels as text, traced and asked about
`merging`, `reshaping`   variables that are one, tensors in shapes in which indices are plain
`bounds`                 the blocks that a mask leaves
`means`, `not_numbers`   means that move from block to block; which extrema look for NaN
`numerics`, `quotients`  how exactly functions are computed; quotients by numbers
`adjoint`                gradients, which are equations: `derivatives` of functions of elements,
                         `sums`, variables in `digits`, and `index_maps` turned round by
                         `substitution`
`residuals`, `gradients` what a forward pass saves; a function run forwards and backwards, or
                         captured with its gradients: `captured_gradients`
`kernel_text`, `tiles`   a kernel as text of the developer's tier, expressions by `text`
`definitions`            `tile.nn`, each a program of NumPy
`program_text`           all kernels as a file that compares itself with NumPy: `inputs` are random,
                         `numpy_source` and `numpy_text` say what is right, `listing` the equations
`edited`, `compared`     such a file with edits: read, and compared with the equations once
`explain`                what became of a function, and why there are several kernels
=======================  =======================================================================
"""
