// A small any-type: the value type of AutogradContext::saved_data and of module attributes.
#pragma once
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/dict.h"
#include "autograd/tensor.h"

namespace ramet {

class IValue;

namespace detail {
/// Keys are None, numbers, bools and strings; each kind is distinct. A key of another kind is an
/// Error.
template <> struct DictLess<IValue> {
  RAMET_API bool operator()(const IValue& a, const IValue& b) const;
};
}  // namespace detail

/// Holds nothing (None), a number, a bool, a string, a tensor, or a list of numbers or tensors. Or
/// holds a list, tuple or dictionary of any values. It may also hold the name of a value in a file
/// that this library cannot hold. Copies share lists and dictionaries; one that contains itself is
/// never freed.
class RAMET_API IValue {
 public:
  using GenericDict = Dict<IValue, IValue>;
  using GenericList = List<IValue>;
  /// Several values that cannot be changed.
  class Tuple {
   public:
    explicit Tuple(std::vector<IValue> elements) : elements_(std::move(elements)) {}
    /// The values, and their number:
    const std::vector<IValue>& elements() const { return elements_; }
    size_t size() const { return elements_.size(); }

   private:
    std::vector<IValue> elements_;
  };
  /// The pointer by which an IValue holds a tuple.
  using TuplePtr = std::shared_ptr<const Tuple>;
  /// A value from a file that this library cannot hold: an object of a Python class, or a tensor of
  /// another dtype. Every other conversion of it is an Error with its name.
  struct Opaque {
    std::string name;  // "argparse.Namespace", "tensor of torch.complex64"
  };

  IValue() = default;
  IValue(double v);
  IValue(float v);
  IValue(int64_t v);
  IValue(int v);
  IValue(bool v);
  IValue(std::string v);
  IValue(const char* v);
  IValue(Tensor v);
  IValue(const Scalar& v);
  IValue(std::vector<int64_t> v);
  IValue(IntArrayRef v);
  IValue(std::vector<double> v);
  IValue(std::vector<Tensor> v);
  IValue(List<int64_t> v);
  IValue(List<double> v);
  IValue(List<Tensor> v);
  IValue(GenericDict v);
  IValue(GenericList v);
  IValue(TuplePtr v);
  IValue(Opaque v);
  template <class... T>
  IValue(std::tuple<T...> v)
      : IValue(std::apply(
            [](auto&... item) -> TuplePtr {
              return std::make_shared<Tuple>(std::vector<IValue>{IValue(std::move(item))...});
            },
            v)) {}

  /// Is it of this kind? A Scalar is a number or a bool:
  bool isNone() const;
  bool isDouble() const;
  bool isInt() const;
  bool isBool() const;
  bool isString() const;
  bool isTensor() const;
  bool isIntList() const;
  bool isDoubleList() const;
  bool isTensorList() const;
  bool isScalar() const { return isDouble() || isInt() || isBool(); }
  bool isGenericDict() const;
  bool isTuple() const;
  bool isList() const;
  bool isOpaque() const;

  /// The value; an Error where it is of another kind:
  double toDouble() const;
  int64_t toInt() const;
  bool toBool() const;
  const std::string& toStringRef() const;
  const Tensor& toTensor() const;
  const std::vector<int64_t>& toIntVector() const;
  const std::vector<double>& toDoubleVector() const;
  const std::vector<Tensor>& toTensorVector() const;
  Scalar toScalar() const;
  /// LibTorch returns strings and lists as pointers: `toString()->string()`.
  struct Text {
    std::string text;  // the text
    /// The text.
    const std::string& string() const { return text; }
    const Text* operator->() const { return this; }
  };
  /// The string. An Error where the value is none.
  Text toString() const { return {toStringRef()}; }
  /// Lists by LibTorch's names: handles of the list that this holds, not copies. A list of any
  /// values, as in files, becomes a new list of its items. An Error where the value or an item is
  /// of another kind:
  List<int64_t> toIntList() const;
  List<double> toDoubleList() const;
  List<Tensor> toTensorList() const;
  const GenericDict& toGenericDict() const;
  const TuplePtr& toTuple() const;
  const Tuple& toTupleRef() const { return *toTuple(); }
  const Opaque& toOpaque() const;
  /// A list of any values; from a list of numbers or tensors it makes a new one.
  GenericList toList() const;
  /// The items of a list of any values.
  ArrayRef<IValue> toListRef() const;

  /// The value as one of the types above, or as an integer or floating-point number of another
  /// size. An Error where it does not fit.
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
    else if constexpr (std::is_same<T, List<int64_t>>::value) return toIntList();
    else if constexpr (std::is_same<T, List<double>>::value) return toDoubleList();
    else if constexpr (std::is_same<T, List<Tensor>>::value) return toTensorList();
    else if constexpr (std::is_same<T, GenericDict>::value) return toGenericDict();
    else if constexpr (std::is_same<T, GenericList>::value) return toList();
    else static_assert(sizeof(T) == 0, "IValue::to<T>: no value is of that type");
  }
  /// The value, or nothing where this is None.
  template <class T> std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  /// Prints as LibTorch does: "None", "True", "3", "3.", "text", "[1, 2]", "(1, 2)", "{a: 1}",
  /// tensors as they print; "<argparse.Namespace>". A value inside itself prints as "...", and so
  /// does one deeper than 256 levels.
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const IValue& value);
  friend struct detail::DictLess<IValue>;

 private:
  struct Held;
  struct Shown;
  template <class T> bool is() const;
  template <class T> List<T> list_of(const char* wanted) const;
  template <class T> const T& get(const char* wanted) const;
  std::shared_ptr<const Held> held_;  // never changes, so copies share it; none: None
};

namespace impl {
using GenericDict = IValue::GenericDict;
using GenericList = IValue::GenericList;
}  // namespace impl

}  // namespace ramet
