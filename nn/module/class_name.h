// How this library calls its classes in what it prints and in error texts: "ramet::nn::Linear", or
// "torch::nn::Linear" in a program that came in by the door (tools/compat).
//
// Note [The door's prefix]
// One library serves both kinds of programs, so the prefix is asked for when something is printed.
// The library refers to a function that nobody has to define (a weak reference,
// ramet_root_namespace); the door's header defines it in every file that includes it, with default
// visibility whatever the program's own is. Whatever links the two together fills the reference in:
// the linker where the library is static, the loader where it is a shared library (a linker exports
// from a program what the shared libraries on its command line refer to). Nothing runs before
// main(), and nothing is registered. A reference that found nobody when the library was loaded
// stays empty: one prefix a copy of the library.
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
