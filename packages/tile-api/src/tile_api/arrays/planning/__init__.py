"""Which equations are one kernel, the roles of variables in it, and the sizes of its blocks.

===================  ===========================================================================
`partition`          where cuts stand; `inner_products` of tiles; `common_results`
`plan`               roles of variables; `recurrence_plan` of those in steps
`merging`            variables that are one; `reshaping`: tensors in which indices are plain
`nested_sums`        of products, before they are one; `windows`: reductions over those that
                     overlap; `window_runs`: how windows lie in memory
`scattered_operands` are laid out by a kernel of their own
`recurrence_parts`   what steps compute, of `carried_values` and `carried_variables`
`affine`             steps that go in chunks
`bounds`             the blocks that a mask leaves; `scatter`: sums over indices that are data
`split`              streams that several blocks share; `matrix_vector` products
`traffic`, `blocks`  what a kernel moves; sizes by it and by the model of the machine
`row_reduction_blocks`
                     sizes of blocks of rows that are but added up
`storage`            what tiles are stored in; `not_numbers`: which extrema look for NaN
===================  ===========================================================================
"""
