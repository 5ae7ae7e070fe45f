// A small any-type: what AutogradContext::saved_data and module attributes hold.
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
/// Keys are nothing, numbers, bools and strings, each its own kind; of others an Error.
template <> struct DictLess<IValue> {
  RAMET_API bool operator()(const IValue& a, const IValue& b) const;
};
}  // namespace detail

/// Nothing, a number, a bool, a string, a tensor, a list of numbers or tensors, or a list, tuple or
/// dictionary of any values; or the name of what a file has and this library cannot hold. Copies
/// share lists and dictionaries; one that holds itself is never freed.
class RAMET_API IValue {
 public:
  using GenericDict = Dict<IValue, IValue>;
  using GenericList = List<IValue>;
  /// Several values that stay as they are.
  class Tuple {
   public:
    explicit Tuple(std::vector<IValue> elements) : elements_(std::move(elements)) {}
    /// They, and how many:
    const std::vector<IValue>& elements() const { return elements_; }
    size_t size() const { return elements_.size(); }

   private:
    std::vector<IValue> elements_;
  };
  /// How an IValue holds it.
  using TuplePtr = std::shared_ptr<const Tuple>;
  /// What a file has and this library does not: an object of a class of Python, a tensor of another
  /// dtype. All other conversions of it are Errors with its name.
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
  /// LibTorch keeps texts and lists behind pointers: `toString()->string()`.
  struct Text {
    std::string text;  // the text
    /// The same.
    const std::string& string() const { return text; }
    const Text* operator->() const { return this; }
  };
  /// The string; an Error where it is none.
  Text toString() const { return {toStringRef()}; }
  /// Lists by LibTorch's names: handles of what is held, not copies of it. A list of any values, as
  /// files have them, becomes a new one of its items. An Error where the value or an item is of
  /// another kind:
  List<int64_t> toIntList() const;
  List<double> toDoubleList() const;
  List<Tensor> toTensorList() const;
  const GenericDict& toGenericDict() const;
  const TuplePtr& toTuple() const;
  const Tuple& toTupleRef() const { return *toTuple(); }
  const Opaque& toOpaque() const;
  /// Of a list of numbers or tensors one that was made of it.
  GenericList toList() const;
  /// The items of a list of any values.
  ArrayRef<IValue> toListRef() const;

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
    else if constexpr (std::is_same<T, List<int64_t>>::value) return toIntList();
    else if constexpr (std::is_same<T, List<double>>::value) return toDoubleList();
    else if constexpr (std::is_same<T, List<Tensor>>::value) return toTensorList();
    else if constexpr (std::is_same<T, GenericDict>::value) return toGenericDict();
    else if constexpr (std::is_same<T, GenericList>::value) return toList();
    else static_assert(sizeof(T) == 0, "IValue::to<T>: no value is of that type");
  }
  /// Nothing where this is None.
  template <class T> std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  /// As LibTorch's: "None", "True", "3", "3.", "text", "[1, 2]", "(1, 2)", "{a: 1}", tensors as
  /// they print; "<argparse.Namespace>". What holds itself is "..." there, and so is what is deeper
  /// than 256 levels.
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const IValue& value);
  friend struct detail::DictLess<IValue>;

 private:
  struct Held;
  struct Shown;
  template <class T> bool is() const;
  template <class T> List<T> list_of(const char* wanted) const;
  template <class T> const T& get(const char* wanted) const;
  std::shared_ptr<const Held> held_;  // which nobody changes, so copies share it; none: None
};

namespace impl {
using GenericDict = IValue::GenericDict;
using GenericList = IValue::GenericList;
}  // namespace impl

}  // namespace ramet
