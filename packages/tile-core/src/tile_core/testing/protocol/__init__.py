"""The protocol of rings of tiles, followed through every order in which its parts may run.

Independent of lowering and of the emulator: it looks at tile IR alone, in which producers and
consumers wait for, and arrive at, barriers in memory.
"""
