// For functions in C; NVRTC knows printf without a declaration.
#pragma once
