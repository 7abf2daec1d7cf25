"""Functions from tile IR to tile IR, one public pass a file, and what they ask of a program.

Passes are called by verbs (`plan_pipelines`, `specialise_warps`), analyses by nouns (`ranges`,
`liveness`, `hazards`, `touches`, `uniformity`). The parts of the larger ones are in folders:
`pipelines`, `specialise`, `overlap`, `inference`.
"""
