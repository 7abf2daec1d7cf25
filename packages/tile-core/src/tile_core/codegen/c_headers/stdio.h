// For functions in C; device headers know printf without a declaration.
#pragma once
