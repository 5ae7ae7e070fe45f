// The arguments of an operation, without the tensors that its node has edges to.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// One argument under LibTorch's name of the parameter. No value: the caller gave none.
struct Argument {
  /// What an argument may be.
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string,
                             std::vector<int64_t>, Tensor>;
  const char* name = "";
  Value value;
};

/// The arguments of one call, which an operation adds one by one:
///
///   record("SoftmaxBackward0", {x}, std::move(y), backward, [&](Arguments& a) { a("dim", dim); })
///
/// The function that adds them runs only while an observer of the graph is registered. Numbers of a
/// pointwise row that have no name of their own are called "number", in the row's order.
class RAMET_API Arguments {
 public:
  /// Adds an argument: a bool, a number, a Scalar, a text, a list of integers, a tensor, or an
  /// optional of one of these.
  template <class T> void operator()(const char* name, const T& value) {
    if constexpr (std::is_same<T, bool>::value) add_flag(name, value);
    else if constexpr (std::is_integral<T>::value) add_integer(name, static_cast<int64_t>(value));
    else if constexpr (std::is_floating_point<T>::value) add_number(name, value);
    else if constexpr (std::is_same<T, Scalar>::value) add_scalar(name, value);
    else if constexpr (std::is_same<T, Tensor>::value) add_tensor(name, value);
    else if constexpr (std::is_convertible<const T&, std::string_view>::value)
      add_text(name, value);
    else add_integers(name, value);
  }
  template <class T> void operator()(const char* name, const std::optional<T>& value) {
    if (value) operator()(name, *value);
    else add_nothing(name);
  }

  /// In the order of the call.
  const std::vector<Argument>& all() const { return list_; }
  /// The n-th argument of that name; null where there are fewer.
  const Argument* find(std::string_view name, size_t n = 0) const {
    for (const Argument& a : list_)
      if (a.name == name && n-- == 0) return &a;
    return nullptr;
  }

  /// The argument's integer; an Error where there is no such argument or it is of another kind.
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  /// Its bool, as integer().
  bool flag(std::string_view name) const { return get<bool>(name); }
  /// Its text, as integer().
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  /// Its list, as integer().
  const std::vector<int64_t>& integers(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }
  /// Undefined where the caller gave none.
  Tensor tensor(std::string_view name) const {
    const Argument* a = find(name);
    const Tensor* t = a ? std::get_if<Tensor>(&a->value) : nullptr;
    return t ? *t : Tensor();
  }
  /// "dim=1, keepdim=false, reduction='mean', weight=float32[3]", without what the caller did not
  /// give. A tensor's values are not read.
  std::string str() const;
  /// Any number as a double; none where the caller gave none.
  std::optional<double> number(std::string_view name, size_t n = 0) const;

 private:
  // Out of line: an operation's own code stays small.
  Argument::Value& next(const char* name);
  void add_nothing(const char* name);
  void add_flag(const char* name, bool value);
  void add_integer(const char* name, int64_t value);
  void add_number(const char* name, double value);
  void add_scalar(const char* name, const Scalar& value);
  void add_text(const char* name, std::string_view value);
  void add_integers(const char* name, IntArrayRef value);
  void add_tensor(const char* name, const Tensor& value);
  template <class T> const T& get(std::string_view name) const {
    const Argument* a = find(name);
    const T* value = a ? std::get_if<T>(&a->value) : nullptr;
    if (!value) absent(name);
    return *value;
  }
  [[noreturn, gnu::cold]] static void absent(std::string_view name);

  std::vector<Argument> list_;
};

/// A reference to a function or lambda that adds the arguments of one call; by default to none. It
/// does not own the function.
class AddArguments {
 public:
  AddArguments() = default;
  template <class F, class = std::enable_if_t<std::is_invocable<const F&, Arguments&>::value>>
  AddArguments(const F& f)
      : function_(&f),
        call_([](const void* of, Arguments& to) { (*static_cast<const F*>(of))(to); }) {}
  void operator()(Arguments& to) const {
    if (call_) call_(function_, to);
  }

 private:
  const void* function_ = nullptr;
  void (*call_)(const void*, Arguments&) = nullptr;
};

}  // namespace autograd
}  // namespace ramet
