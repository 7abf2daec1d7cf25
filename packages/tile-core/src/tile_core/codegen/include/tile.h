// What printed kernels include: picks the device header of the toolchain that compiles them.
//
// All device headers give the same names one meaning, and printed kernels use nothing else:
//
//   TILE_KERNEL(threads, blocks) void name(…) { … }    a kernel; `blocks` share a multiprocessor
//   TILE_CLUSTER(x, y, z)                              behind it: blocks that share their memory
//   TILE_TENSOR_MAP(name)                              a parameter: how copies see a tensor
//   TILE_EXPORT(name)                                  lists it for launchers that need that
//   TILE_UNROLL, TILE_NO_UNROLL                        in front of `for`
//   threadIdx.x, blockIdx.x, …                         read once, at the top
//
//   bool tile::i4 i8 i16 int tile::i64, u4 u8 u16 u32 u64, half_t bfloat16_t float double,
//   tile::e4m3 e5m2 … e2m1 e8m0 (floats of 8 bits and fewer, a byte each)
//
//   tile::gptr<T>                 a parameter: memory of the GPU; `const T` if only read
//   tile::sptr<T>                 the block's memory: tile::smem<T>(byte offset, elements)
//   tile::frag<T, N>              registers of one thread, constant indices once unrolled
//   p[i], p + (i)                 an element, to read or write; where the next ones are
//   tile::view<T>(p)              the same bytes in another element type
//   tile::at<T>(address)          memory at an address that is a number
//   tile::raw(p)                  a plain pointer, for the user's own functions
//   tile::any_pointer(address)    the same of an address that is a number
//
//   tile::cast<T>(x)              conversions: float to integer truncates, saturates, NaN is 0;
//                                 integers wrap; narrow floats saturate (cast_unsaturated: not)
//   tile::bitcast<T>(x)           the bits of x as another type
//   tile::floordiv, floormod      rounded down; `/` and `%` are for numbers that are not negative
//   tile::min, max, exp2, …       one overload set per function of the language
//   tile::load<N>, store<N>, …    see tile_core.ir.device_calls
//   tile::print, assert_that
//
// Elements may be stand-ins for their value: where templates or `?:` would take them for what they
// are, printed kernels say float(p[i]); `cast` and `bitcast` see through them.
#pragma once

#if defined(TILE_SIM)
#include "tile_sim.h"
#elif defined(__HIP__) || defined(__HIPCC_RTC__)
#include "tile_hip.h"
#else
#include "tile_cuda.h"
#endif

// Words of C that C++ lacks, for functions that the user brings along.
#ifndef _Bool
#define _Bool bool
#endif
#ifndef restrict
#define restrict __restrict__
#endif

// Values without a literal.
#ifndef TILE_INFINITY
#define TILE_INFINITY __builtin_inff()
#define TILE_NAN __builtin_nanf("")
#endif
