// For functions in C; NVRTC knows memcpy and memset without a declaration.
#pragma once
