// The names of this library's classes in printed texts and error texts: "ramet::nn::Linear". They
// are "torch::nn::Linear" in a program that includes the LibTorch compatibility headers
// (tools/compat).
//
// Note [The compatibility prefix]
// One library serves both kinds of programs, so it asks for the prefix when it prints. It refers
// weakly to a function, ramet_root_namespace, that need not be defined. The compatibility header
// defines that function in every file that includes it, with default visibility whatever the
// program's own is. Where the library is static, the linker fills in the reference. Where it is
// shared, the loader does: a linker exports from a program the symbols that shared libraries on its
// command line refer to. Nothing runs before main(), and nothing is registered. A reference that
// found no definition when the library was loaded stays empty. So each copy of the library has one
// prefix.
#pragma once
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace ramet {
namespace nn {
namespace detail {

/// "ramet" or "torch".
RAMET_API const char* root_namespace();
/// "ramet::nn::Linear(" of "nn::Linear(".
RAMET_API std::string qualified(std::string_view path);
/// `text` with every "ramet::" that begins a name written as the root namespace.
RAMET_API std::string with_root_namespace(std::string text);

}  // namespace detail
}  // namespace nn
}  // namespace ramet
