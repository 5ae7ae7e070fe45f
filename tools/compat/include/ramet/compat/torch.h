// The door for programs that were written for LibTorch: whatever of LibTorch's headers they include
// from this folder is this one. Programs that are new include ramet.h, and may say `namespace torch
// = ramet;`.
//
// It brings what LibTorch's torch/torch.h brings of the standard library, all of Ramet, and real
// namespaces torch, at, c10 and caffe2 that a program may open again (names.h says what is in
// them). One unit has this door, or the one-line alias, or a real LibTorch, and never two of them.
#pragma once

#if defined(C10_MACROS_EXPORT_H_) || defined(C10_MACROS_MACROS_H_) || defined(C10_API) || \
    defined(C10_EXPORT) || defined(TORCH_API) || defined(TORCH_VERSION)
#error "Ramet's door in a unit with a header of a real LibTorch: take one off the path"
#include <a_real_LibTorch_and_the_door_in_one_unit>  // stops here
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
#include <stack>
#include <thread>
#include <typeindex>
#include <unordered_set>

#include "ramet.h"

// Compilers show such a line where a unit has the alias too: g++ the first, clang the last.
// clang-format off
namespace torch {}  // an error here: the alias `namespace torch = ramet;` is for programs without this door
namespace at {}  // an error here: the alias `namespace at = ramet;` is for programs without this door
namespace c10 {}  // an error here: the alias `namespace c10 = ramet;` is for programs without this door
// clang-format on

#include "ramet/compat/check.h"
#include "ramet/compat/containers.h"
#include "ramet/compat/context.h"
#include "ramet/compat/cuda.h"
#include "ramet/compat/dispatch.h"
#include "ramet/compat/jit.h"
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
namespace torch {}  // an error here: the alias `namespace torch = ramet;` is for programs without this door
namespace at {}  // an error here: the alias `namespace at = ramet;` is for programs without this door
namespace c10 {}  // an error here: the alias `namespace c10 = ramet;` is for programs without this door
// clang-format on

// What LibTorch's own headers ask first.
#pragma GCC poison C10_MACROS_EXPORT_H_  // a real LibTorch in a unit with Ramet's door
