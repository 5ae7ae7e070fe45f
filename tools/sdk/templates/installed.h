// Made by ./tools/install of Ramet @VERSION@; runtime/base/error.h, which all headers include,
// includes it.
//
// Headers and library are of one build, or the program does not link. Each unit refers to a symbol
// with a digest of the headers that it was compiled with, and the library defines its own. (A
// comparison at run time would come after two layouts had been mixed up, and would need a
// constructor in every unit.)
#pragma once
#if __cplusplus < 201703L
#error "Ramet wants C++17 or later: compile this unit with -std=c++17"
#endif
#include "ramet/runtime/base/supported.h"

#include <string>

#if defined(_GLIBCXX_DEBUG)
#error "Ramet's library was compiled without _GLIBCXX_DEBUG, which gives std::vector another layout: compile this unit without it"
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI + 0 != @CXX11_ABI@
#error "Ramet's library was compiled with _GLIBCXX_USE_CXX11_ABI=@CXX11_ABI@, which decides what std::string is: compile this unit with it"
#endif

extern "C" {
extern __attribute__((visibility("default"))) const char @SYMBOL@;
/// The library that inline functions of these headers call. A shared library with the archive may
/// be linked into a program instead of loaded. Then it calls the program's function where the
/// program has one, too. Two libraries would each do a part; the first allocation reports this
/// (runtime/memory/pool.cc).
__attribute__((visibility("default"))) inline const void* ramet_library_in_use() {
  return &@SYMBOL@;
}
}

namespace ramet {
namespace detail {
namespace {
#if __has_cpp_attribute(gnu::retain)
[[gnu::used, gnu::retain]]
#else
[[gnu::used]]
#endif
const void* (*const library_of_these_headers)() = &ramet_library_in_use;
}  // namespace
}  // namespace detail
}  // namespace ramet
