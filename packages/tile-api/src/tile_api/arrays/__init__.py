"""The beginner's tier: functions of whole arrays, captured as equations and turned into kernels.

====================  ==========================================================================
`function`, `given`   `tile.function`, the object that users call; what it may be called with
`annotations`         `tile.Array`: shapes and types that parameters have
`definitions`         `tile.nn`, each a program of NumPy
`capturing`           the function run on arrays without elements
`equations`           what it computes: expressions over index variables, and their meaning
`gradients`           adjoints of equations, and functions run forwards and backwards
`reductions`          which reductions that depend on each other are one loop
`planning`            which equations are one kernel; roles of variables, sizes of blocks
`printing`            kernels and programs as text
`deriving`, `pricing` all of these steps; kernels as text, traced and asked about
`running`             kernels, compiled, that run on arguments
`own_faults`          kernels that fail to be written or compiled
`edited`, `compared`  files of kernels with edits: read, and compared with the equations once
`inputs`              random arguments
`sharding`            which dimensions may be split among machines
`explain`             what became of a function, and why there are several kernels
====================  ==========================================================================
"""

from tile_core.needed_packages import needed

needed("numpy", "a function of arrays")
