// Sizes and the null pointer, for functions in C.
#pragma once

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)0 - (char*)0);

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
