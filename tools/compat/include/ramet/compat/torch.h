// For programs that were written for LibTorch: each of LibTorch's headers in this folder includes
// this one. New programs include ramet.h, and may say `namespace torch = ramet;`.
//
// It includes those headers of the standard library that LibTorch's torch/torch.h includes, and all
// of Ramet. Its namespaces torch, at, c10 and caffe2 are real ones, which a program may open again;
// names.h lists what is in them. One translation unit has these headers, or the alias, or a real
// LibTorch, and never two of them.
#pragma once

#if defined(C10_MACROS_EXPORT_H_) || defined(C10_MACROS_MACROS_H_) || defined(C10_API) || \
    defined(C10_EXPORT) || defined(TORCH_API) || defined(TORCH_VERSION)
#error "Ramet's compatibility headers in a unit with a header of a real LibTorch: take one off the path"
#include <a_real_LibTorch_and_the_compatibility_headers_in_one_unit>  // stops here
#endif

#include <sys/time.h>
#include <unistd.h>

#include <bitset>
#include <cassert>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <list>
#include <numeric>
#include <queue>
#include <ranges>
#include <span>
#include <sstream>
#include <stack>
#include <thread>
#include <typeindex>
#include <unordered_set>

#include "ramet.h"

// Compilers show such a line where a unit has the alias too: g++ the first, clang the last.
// clang-format off
namespace torch {}  // an error here: the alias `namespace torch = ramet;` is for programs without these headers
namespace at {}  // an error here: the alias `namespace at = ramet;` is for programs without these headers
namespace c10 {}  // an error here: the alias `namespace c10 = ramet;` is for programs without these headers
// clang-format on

#include "ramet/compat/check.h"
#include "ramet/compat/containers.h"
#include "ramet/compat/context.h"
#include "ramet/compat/cuda.h"
#include "ramet/compat/dispatch.h"
#include "ramet/compat/logging.h"
#include "ramet/compat/macros.h"
#include "ramet/compat/optim.h"
#include "ramet/compat/prefix.h"
#include "ramet/compat/profile.h"
#include "ramet/compat/str.h"
#include "ramet/compat/util.h"
#include "ramet/compat/warning.h"

// The last one.
#include "ramet/compat/names.h"

// clang-format off
namespace torch {}  // an error here: the alias `namespace torch = ramet;` is for programs without these headers
namespace at {}  // an error here: the alias `namespace at = ramet;` is for programs without these headers
namespace c10 {}  // an error here: the alias `namespace c10 = ramet;` is for programs without these headers
// clang-format on

// What LibTorch's own headers ask first.
#pragma GCC poison C10_MACROS_EXPORT_H_  // a real LibTorch in a unit with Ramet's compatibility headers
