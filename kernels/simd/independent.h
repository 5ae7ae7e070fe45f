// A word for compilers, before a loop whose passes touch different memory.
#pragma once

#if defined(__clang__)
#define RAMET_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RAMET_INDEPENDENT _Pragma("GCC ivdep")
#endif
