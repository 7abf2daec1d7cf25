"""What processes that were started by a program with the alias find as ``tilelang``."""

from tile_api.tilelang.installing import install_inherited

install_inherited()
