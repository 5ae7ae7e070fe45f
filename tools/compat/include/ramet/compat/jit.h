// torch/script.h may be included. Ramet cannot run the programs that it is for, which Python wrote.
// A use of one of these names is an error that says so, at compile time.
#pragma once

#include <type_traits>

namespace ramet {
namespace compat {
template <class...> struct Never : std::false_type {};
}  // namespace compat
}  // namespace ramet

namespace torch {
namespace jit {

#define RAMET_NO_JIT(...)                                                                     \
  static_assert(                                                                              \
      ::ramet::compat::Never<__VA_ARGS__>::value,                                             \
      "torch::jit: Ramet does not run TorchScript. Write the model as torch::nn modules and " \
      "load its weights: torch::load, or ramet::serialize::load_safetensors for those saved " \
      "by Python")

/// TorchScript's module. Declaring one is an error that says what to do instead.
class Module {
 public:
  template <class T = void> Module() { RAMET_NO_JIT(T); }
  template <class... A> Module forward(A&&...) {
    RAMET_NO_JIT(A..., int);
    return *this;
  }
  template <class... A> void to(A&&...) { RAMET_NO_JIT(A..., int); }
  template <class... A> void train(A&&...) { RAMET_NO_JIT(A..., int); }
  template <class... A> void eval(A&&...) { RAMET_NO_JIT(A..., int); }
  template <class... A> void save(A&&...) { RAMET_NO_JIT(A..., int); }
};

namespace script {
using Module = jit::Module;
}  // namespace script

/// Reads what torch.jit.save has written: an error that says what to do instead.
template <class... A> Module load(A&&...) {
  RAMET_NO_JIT(A..., int);
  return Module();
}

/// Compiles TorchScript's source: an error that says what to do instead.
template <class... A> Module compile(A&&...) {
  RAMET_NO_JIT(A..., int);
  return Module();
}

}  // namespace jit
}  // namespace torch
