// The objects that the handles of nn/c/c.h stand for, and how an exception becomes a status.
//
// Note [Handles in C]
// A handle is a number stored in a pointer. It holds a slot of one table, the slot's generation and
// the kind of the object. A slot that is used again gets another generation. So the table finds and
// refuses each wrong handle without dereferencing it. Wrong are NULL, a freed handle, a second
// free, and a module in place of a tensor; nothing in Fortran or ctypes prevents these. A function
// that has found an object shares its ownership, so another thread may free the handle at the same
// time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/c/c.h"
#include "nn/module/any_module.h"
#include "nn/optim/optimizer.h"

namespace ramet::c {

enum class Kind : uint8_t { kTensor = 1, kModule, kOptimizer, kGroup, kScaler };

struct RAMET_API Object {
  virtual ~Object();
};
struct TensorObject final : Object {
  static constexpr Kind kKind = Kind::kTensor;
  using Handle = ramet_tensor;
  explicit TensorObject(Tensor t) : tensor(std::move(t)) {}
  Tensor tensor;
};
struct ModuleObject final : Object {
  static constexpr Kind kKind = Kind::kModule;
  using Handle = ramet_module;
  nn::AnyModule module;
  std::string json;  // of which it was made
  std::vector<std::pair<std::string, Tensor>> parameters, buffers;
};
struct OptimizerObject final : Object {
  static constexpr Kind kKind = Kind::kOptimizer;
  using Handle = ramet_optimizer;
  std::string name;
  std::unique_ptr<optim::Optimizer> optimizer;
};
/// `for_step`: the argument of a function that makes a step without a closure, an Error for LBFGS.
std::shared_ptr<OptimizerObject> optimizer_of(const ramet_optimizer* handle, const char* op,
                                              bool for_step = false);

/// The handle of a new slot.
RAMET_API void* add_handle(Kind kind, std::shared_ptr<Object> object);
/// Finds an object. An Error of `op` about `argument` where the handle is not a valid one of that
/// kind.
RAMET_API std::shared_ptr<Object> find_handle(Kind kind, const void* handle, const char* op,
                                              const char* argument);
/// NULL: nothing.
RAMET_API void free_handle(Kind kind, const void* handle, const char* op);

template <class T> typename T::Handle* handle_of(std::shared_ptr<T> object) {
  return static_cast<typename T::Handle*>(add_handle(T::kKind, std::move(object)));
}
template <class T>
std::shared_ptr<T> object_of(const typename T::Handle* handle, const char* op,
                             const char* argument) {
  return std::static_pointer_cast<T>(find_handle(T::kKind, handle, op, argument));
}
inline ramet_tensor* handle_of(Tensor tensor) {
  return handle_of(std::make_shared<TensorObject>(std::move(tensor)));
}
inline Tensor tensor_of(const ramet_tensor* handle, const char* op,
                        const char* argument = "tensor") {
  return object_of<TensorObject>(handle, op, argument)->tensor;
}

/// The dtype of a RAMET_... number; an Error of `op` where there is none.
ScalarType type_of(int dtype, const char* op);
/// The number of a dtype.
int number_of(ScalarType type);

/// How many times this thread's last error was set.
RAMET_API uint64_t failures();

/// Inside a catch block: keeps the text for ramet_last_error and returns the status. Lets the end
/// of a thread (pthread_cancel) pass.
RAMET_API int failed();

/// The status of f(op): `return status_of(__func__, [&](const char* op) { ... });`
template <class F> int status_of(const char* op, const F& f) {
  try {
    f(op);
    return RAMET_OK;
  } catch (...) { return failed(); }
}
/// What f(op) returns, or NULL.
template <class F> auto result_of(const char* op, const F& f) -> decltype(f(op)) {
  try {
    return f(op);
  } catch (...) {
    failed();
    return nullptr;
  }
}

template <class T> T& there(T* pointer, const char* op, const char* argument) {
  RAMET_CHECK(pointer, op, argument, ": expected a place, got NULL");
  return *pointer;
}
inline std::string text(const char* given, const char* op, const char* argument) {
  RAMET_CHECK(given, op, argument, ": expected a text, got NULL");
  return given;
}

}  // namespace ramet::c
