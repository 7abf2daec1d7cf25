"""Functions from tile IR to tile IR, one public pass a file.

Passes are called by verbs (`plan_pipelines`, `specialise_warps`); what they ask of a program is in
`tile_core.analysis`. The parts of the larger ones are in folders: `pipelines`,
`warp_specialisation`, `overlap`, `inference`, `guards`.
"""
