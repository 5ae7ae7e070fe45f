// How an operator's function reads its arguments and returns its results.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "autograd/schema/operators_internal.h"

namespace ramet::script {

/// A dtype or memory format by PyTorch's number, and its number. An Error for one that is not here.
ScalarType dtype_of(int64_t number);
int64_t number_of(ScalarType dtype);
MemoryFormat format_of(int64_t number);
/// From a device or its text.
Device device_of(const IValue& value);

/// The arguments of a call as the types of C++. Each function takes the place of an argument; an
/// Error where the argument is of another kind. The name says the type: `may_` is optional.
class Call {
 public:
  explicit Call(Arguments arguments) : arguments_(arguments) {}

  size_t size() const { return arguments_.size(); }
  const IValue& operator[](size_t i) const { return *arguments_[i]; }
  bool none(size_t i) const { return arguments_[i]->isNone(); }

  const Tensor& tensor(size_t i) const { return arguments_[i]->toTensor(); }
  /// For functions that write a handle's tensor.
  Tensor& written(size_t i) const { return const_cast<Tensor&>(arguments_[i]->toTensor()); }
  std::optional<Tensor> may_tensor(size_t i) const;
  int64_t integer(size_t i) const { return arguments_[i]->toInt(); }
  std::optional<int64_t> may_integer(size_t i) const;
  double real(size_t i) const {
    return RAMET_LIKELY(arguments_[i]->isDouble()) ? arguments_[i]->toDouble()
                                                   : arguments_[i]->toScalar().toDouble();
  }
  std::optional<double> may_real(size_t i) const;
  bool truth(size_t i) const { return arguments_[i]->toBool(); }
  std::optional<bool> may_truth(size_t i) const;
  Scalar number(size_t i) const { return arguments_[i]->toScalar(); }
  std::optional<Scalar> may_number(size_t i) const;
  IntArrayRef integers(size_t i) const {
    return RAMET_LIKELY(arguments_[i]->isIntList()) ? IntArrayRef(arguments_[i]->toIntVector())
                                                    : no_integers(i);
  }
  OptionalIntArrayRef may_integers(size_t i) const;
  ArrayRef<double> reals(size_t i) const { return arguments_[i]->toDoubleVector(); }
  std::optional<ArrayRef<double>> may_reals(size_t i) const;
  TensorList tensors(size_t i) const;
  std::vector<std::optional<Tensor>> optional_tensors(size_t i) const;
  const std::string& text(size_t i) const { return arguments_[i]->toStringRef(); }
  std::optional<std::string_view> may_text(size_t i) const;
  ScalarType dtype(size_t i) const { return dtype_of(integer(i)); }
  std::optional<ScalarType> may_dtype(size_t i) const;
  std::optional<MemoryFormat> may_format(size_t i) const;
  std::optional<Generator> may_generator(size_t i) const;
  std::optional<Device> may_device(size_t i) const;
  /// From dtype, layout, device and pin_memory, which are the arguments from place `i` on.
  TensorOptions options(size_t i) const;

 private:
  // No integers, for an empty list of a type that is not known. Else the Error.
  IntArrayRef no_integers(size_t i) const;
  Arguments arguments_;
};

/// The value of a result.
inline IValue result(IValue value) { return value; }
inline IValue result(Tensor value) { return value; }
template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0> IValue result(T value) {
  return value;
}
IValue result(std::vector<Tensor> tensors);
IValue result(std::vector<IValue> elements);
template <class... T> IValue result(std::tuple<T...> values) {
  return std::apply(
      [](auto&... item) { return result(std::vector<IValue>{result(std::move(item))...}); },
      values);
}

/// How a parameter of a C++ function is written in a schema and read from an argument.
template <class T> struct Passed;
#define RAMET_PASSED(Type, schema, reader)                                           \
  template <> struct Passed<Type> {                                                  \
    static constexpr const char* kText = schema;                                     \
    static decltype(auto) get(const Call& call, size_t i) { return call.reader(i); } \
  };
RAMET_PASSED(const Tensor&, "Tensor", tensor)
RAMET_PASSED(Tensor&, "Tensor(a!)", written)
RAMET_PASSED(const std::optional<Tensor>&, "Tensor?", may_tensor)
RAMET_PASSED(int64_t, "int", integer)
RAMET_PASSED(std::optional<int64_t>, "int?", may_integer)
RAMET_PASSED(double, "float", real)
RAMET_PASSED(std::optional<double>, "float?", may_real)
RAMET_PASSED(bool, "bool", truth)
RAMET_PASSED(std::optional<bool>, "bool?", may_truth)
RAMET_PASSED(const Scalar&, "Scalar", number)
RAMET_PASSED(const std::optional<Scalar>&, "Scalar?", may_number)
RAMET_PASSED(IntArrayRef, "int[]", integers)
RAMET_PASSED(OptionalIntArrayRef, "int[]?", may_integers)
RAMET_PASSED(ArrayRef<double>, "float[]", reals)
RAMET_PASSED(std::optional<ArrayRef<double>>, "float[]?", may_reals)
RAMET_PASSED(TensorList, "Tensor[]", tensors)
RAMET_PASSED(const std::vector<std::optional<Tensor>>&, "Tensor?[]", optional_tensors)
RAMET_PASSED(const std::string&, "str", text)
RAMET_PASSED(std::string_view, "str", text)
RAMET_PASSED(std::optional<std::string_view>, "str?", may_text)
RAMET_PASSED(ScalarType, "ScalarType", dtype)
RAMET_PASSED(std::optional<ScalarType>, "ScalarType?", may_dtype)
RAMET_PASSED(std::optional<MemoryFormat>, "MemoryFormat?", may_format)
RAMET_PASSED(std::optional<Generator>, "Generator?", may_generator)
#undef RAMET_PASSED
template <> struct Passed<int> : Passed<int64_t> {
  static int get(const Call& call, size_t i) { return static_cast<int>(call.integer(i)); }
};
template <> struct Passed<std::optional<std::string>> {
  static constexpr const char* kText = "str?";
  static std::optional<std::string> get(const Call& call, size_t i) {
    const std::optional<std::string_view> text = call.may_text(i);
    return text ? std::optional<std::string>(*text) : std::nullopt;
  }
};

/// How a C++ result is written in a schema.
template <class T> struct Returned;
template <> struct Returned<Tensor> { static constexpr const char* kText = "Tensor"; };
template <> struct Returned<Tensor&> { static constexpr const char* kText = "Tensor(a!)"; };
template <> struct Returned<const Tensor&> { static constexpr const char* kText = "Tensor"; };
template <> struct Returned<bool> { static constexpr const char* kText = "bool"; };
template <> struct Returned<int64_t> { static constexpr const char* kText = "int"; };
template <> struct Returned<double> { static constexpr const char* kText = "float"; };
template <> struct Returned<std::vector<Tensor>> {
  static constexpr const char* kText = "Tensor[]";
};
template <> struct Returned<std::tuple<Tensor, Tensor>> {
  static constexpr const char* kText = "(Tensor, Tensor)";
};
template <> struct Returned<std::tuple<Tensor, Tensor, Tensor>> {
  static constexpr const char* kText = "(Tensor, Tensor, Tensor)";
};

/// An operator as text and function: `text` is PyTorch's schema.
struct Line {
  const char* text;
  Function function;
  /// Its value as an expression of the call `a`, or the function with the types of its parameters.
  const char* expression = "";
  const char* called = "";
  const char* const* types = nullptr;
};
/// An operator made from a row: its name without namespace, and the parameters as C++ writes them.
/// Types of parameters and result are as schemas write them.
struct Row {
  const char* name;
  const char* parameters;
  const char* const* types;
  size_t count;
  const char* result;
  const char* called;  // "name", or ".name" of a method
  Function function;
};

/// Lines of tensor functions; a name that has one has no rows.
using Lines = ArrayRef<Line>;

// Of each source by itself: a thousand thunks that linkers compare are half of an object file.
namespace {
/// Functions of one type. A thunk only names its function; what reads the arguments exists once.
template <class F> struct Bound;
template <class R, class... A> struct Bound<R(A...)> {
  using Free = R (*)(A...);
  using Method = R (Tensor::*)(A...) const;
  static constexpr const char* kResult = Returned<R>::kText;
  static constexpr const char* kTypes[] = {Passed<A>::kText..., nullptr};
  static constexpr size_t kCount = sizeof...(A);

  template <size_t... I>
  [[gnu::noinline]] static IValue call(Arguments arguments, Free f, std::index_sequence<I...>) {
    const Call call(arguments);
    return result(f(Passed<A>::get(call, I)...));
  }
  template <size_t... I>
  [[gnu::noinline]] static IValue call(Arguments arguments, Method f, std::index_sequence<I...>) {
    const Call call(arguments);
    return result((call.tensor(0).*f)(Passed<A>::get(call, I + 1)...));
  }
  template <auto f> static IValue thunk(Arguments arguments) {
    return call(arguments, f, std::index_sequence_for<A...>());
  }
};
}  // namespace

}  // namespace ramet::script
