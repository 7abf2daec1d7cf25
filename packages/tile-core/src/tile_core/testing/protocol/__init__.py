"""The protocol of barriers, tiles and engines, proved for every order of threads and blocks.

Independent of lowering and of the emulator: it looks at tile IR alone, in which producers and
consumers wait for, and arrive at, barriers in memory.
"""
