"""The beginner's tier: functions of whole arrays, captured as equations and turned into kernels.

=================  =============================================================================
`function`         `tile.function`, the object that users call
`capture`          the function run on arrays without elements
`array`            such an array, and what NumPy's protocols ask of it
`numpy_names`      NumPy's functions by name
`equations`        scalar expressions over index variables
`evaluate`         their meaning, with NumPy
=================  =============================================================================
"""
