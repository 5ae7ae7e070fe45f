// A small any-type: what AutogradContext::saved_data and module attributes hold.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

/// Nothing, a number, a bool, a string, a tensor, or a list of numbers or tensors.
class IValue {
 public:
  IValue() = default;
  IValue(double v) : value_(v) {}
  IValue(float v) : value_(static_cast<double>(v)) {}
  IValue(int64_t v) : value_(v) {}
  IValue(int v) : value_(static_cast<int64_t>(v)) {}
  IValue(bool v) : value_(v) {}
  IValue(std::string v) : value_(std::move(v)) {}
  IValue(const char* v) : value_(std::string(v)) {}
  IValue(Tensor v) : value_(std::move(v)) {}
  IValue(const Scalar& v) {
    if (v.isFloatingPoint()) value_ = v.toDouble();
    else if (v.isBoolean()) value_ = v.toBool();
    else value_ = v.toLong();
  }
  IValue(std::vector<int64_t> v) : value_(std::move(v)) {}
  IValue(IntArrayRef v) : value_(v.vec()) {}
  IValue(std::vector<double> v) : value_(std::move(v)) {}
  IValue(std::vector<Tensor> v) : value_(std::move(v)) {}

  bool isNone() const { return is<std::monostate>(); }
  bool isDouble() const { return is<double>(); }
  bool isInt() const { return is<int64_t>(); }
  bool isBool() const { return is<bool>(); }
  bool isString() const { return is<std::string>(); }
  bool isTensor() const { return is<Tensor>(); }
  bool isIntList() const { return is<std::vector<int64_t>>(); }
  bool isDoubleList() const { return is<std::vector<double>>(); }
  bool isTensorList() const { return is<std::vector<Tensor>>(); }
  bool isScalar() const { return isDouble() || isInt() || isBool(); }
  bool isList() const { return isIntList() || isDoubleList() || isTensorList(); }

  double toDouble() const { return get<double>("double"); }
  int64_t toInt() const { return get<int64_t>("int"); }
  bool toBool() const { return get<bool>("bool"); }
  const std::string& toStringRef() const { return get<std::string>("string"); }
  const Tensor& toTensor() const { return get<Tensor>("Tensor"); }
  const std::vector<int64_t>& toIntVector() const { return get<std::vector<int64_t>>("int list"); }
  const std::vector<double>& toDoubleVector() const {
    return get<std::vector<double>>("double list");
  }
  const std::vector<Tensor>& toTensorVector() const {
    return get<std::vector<Tensor>>("tensor list");
  }
  Scalar toScalar() const {
    if (isInt()) return toInt();
    if (isBool()) return toBool();
    return toDouble();
  }
  /// LibTorch keeps texts and lists behind pointers: `toString()->string()`.
  struct Text {
    std::string text;
    const std::string& string() const { return text; }
    const Text* operator->() const { return this; }
  };
  Text toString() const { return {toStringRef()}; }
  const std::vector<int64_t>& toIntList() const { return toIntVector(); }
  const std::vector<double>& toDoubleList() const { return toDoubleVector(); }
  const std::vector<Tensor>& toTensorList() const { return toTensorVector(); }

  /// The value as one of the types above, or as an integer or a floating-point number of another
  /// size: an Error where it does not fit.
  template <class T> T to() const {
    if constexpr (std::is_same<T, bool>::value) return toBool();
    else if constexpr (std::is_integral<T>::value) return Scalar(toInt()).to<T>();
    else if constexpr (std::is_floating_point<T>::value) return static_cast<T>(toDouble());
    else if constexpr (std::is_same<T, Scalar>::value) return toScalar();
    else if constexpr (std::is_same<T, std::string>::value) return toStringRef();
    else if constexpr (std::is_same<T, Tensor>::value) return toTensor();
    else if constexpr (std::is_same<T, std::vector<int64_t>>::value) return toIntVector();
    else if constexpr (std::is_same<T, std::vector<double>>::value) return toDoubleVector();
    else if constexpr (std::is_same<T, std::vector<Tensor>>::value) return toTensorVector();
    else static_assert(sizeof(T) == 0, "IValue::to<T>: no value is of that type");
  }
  /// Nothing where this is None.
  template <class T> std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  /// As LibTorch's: "None", "True", "3", "3.", "text", "[1, 2]", tensors as they print.
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const IValue& value);

 private:
  template <class T> bool is() const { return std::holds_alternative<T>(value_); }
  template <class T> const T& get(const char* wanted) const {
    static const char* const names[] = {"None",   "double",   "int",         "bool",       "string",
                                        "Tensor", "int list", "double list", "tensor list"};
    RAMET_CHECK(is<T>(), "IValue", "got ", names[value_.index()], ", expected ", wanted);
    return std::get<T>(value_);
  }
  std::variant<std::monostate, double, int64_t, bool, std::string, Tensor, std::vector<int64_t>,
               std::vector<double>, std::vector<Tensor>>
      value_;
};

}  // namespace ramet
