// For functions in C; NVRTC knows abs, malloc and free without a declaration.
#pragma once
