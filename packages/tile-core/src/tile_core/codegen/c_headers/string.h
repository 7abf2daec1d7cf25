// For functions in C; device headers know memcpy and memset without a declaration.
#pragma once
