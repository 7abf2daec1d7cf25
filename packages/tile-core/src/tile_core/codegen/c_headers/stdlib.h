// For functions in C; device headers know abs without a declaration, those of CUDA malloc and free.
#pragma once
