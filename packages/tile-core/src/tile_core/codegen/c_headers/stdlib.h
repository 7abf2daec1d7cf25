// For functions in C; device headers know abs without a declaration, and some malloc and free.
#pragma once
