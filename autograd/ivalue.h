// A small any-type: the value type of AutogradContext::saved_data, of files and of scripts.
#pragma once
#include <exception>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/dict.h"
#include "autograd/tensor.h"

namespace ramet {

class IValue;
namespace jit {
class Module;
}

namespace detail {
/// Keys are None, numbers, bools and strings; each kind is distinct. A key of another kind is an
/// Error.
template <> struct DictLess<IValue> {
  RAMET_API bool operator()(const IValue& a, const IValue& b) const;
};
}  // namespace detail

/// Holds nothing (None), a number, a bool, a string, a tensor, a device, a generator, or a list of
/// numbers, bools or tensors. Or holds a list, tuple or dictionary of any values, an object of a
/// script's class, or a future. It may also hold the name of a value in a file that this library
/// cannot hold. Copies share lists, dictionaries and objects; one that contains itself is never
/// freed. Numbers and tensors need no memory of their own.
class RAMET_API IValue {
 public:
  using GenericDict = Dict<IValue, IValue>;
  using GenericList = List<IValue>;
  /// Several values that cannot be changed. Those of a NamedTuple have names.
  class Tuple {
   public:
    /// Of a NamedTuple. All its tuples share them.
    struct Names {
      std::string name;                 ///< of the class: "__torch__.net.Point"
      std::vector<std::string> fields;  ///< in order
    };
    explicit Tuple(std::vector<IValue> elements, std::shared_ptr<const Names> names = nullptr)
        : elements_(std::move(elements)), names_(std::move(names)) {}
    /// A pointer to a new tuple.
    static std::shared_ptr<const Tuple> create(std::vector<IValue> elements) {
      return std::make_shared<Tuple>(std::move(elements));
    }
    /// The values, and their number:
    const std::vector<IValue>& elements() const { return elements_; }
    size_t size() const { return elements_.size(); }
    /// Null where this is no NamedTuple.
    const std::shared_ptr<const Names>& names() const { return names_; }

   private:
    std::vector<IValue> elements_;
    std::shared_ptr<const Names> names_;
  };
  /// The pointer by which an IValue holds a tuple.
  using TuplePtr = std::shared_ptr<const Tuple>;
  /// An object of a class that a script defines: nn/script derives from it.
  class RAMET_API Object {
   public:
    virtual ~Object();
    /// The class's full name ("__torch__.net.Net").
    virtual const std::string& class_name() const = 0;
    /// LibTorch's name for it.
    const std::string& name() const { return class_name(); }
    /// What a class is: one of modules, of enumerators, or another.
    enum class Role {
      kPlain,       // neither of the two
      kModule,      // a subclass of torch.nn.Module
      kEnumerator,  // a subclass of enum.Enum
    };
    /// What its class is.
    virtual Role role() const { return Role::kPlain; }
    /// An attribute by name. An Error where the class has none of that name, or, of the second,
    /// where the value has not the attribute's type:
    virtual IValue getAttr(const std::string& name) const;
    virtual void setAttr(const std::string& name, IValue value);
    /// Prints "<__torch__.net.Net object>"; an enumerator prints otherwise.
    virtual void print(std::ostream& out) const;
  };
  /// The pointer by which an IValue holds an object.
  using ObjectPtr = std::shared_ptr<Object>;
  /// What a script's fork() gives. It has run before fork() returns, so this is always completed.
  class RAMET_API Future;
  /// The pointer by which an IValue holds a future.
  using FuturePtr = std::shared_ptr<const Future>;
  /// A value from a file that this library cannot hold: an object of a Python class, or a tensor of
  /// another dtype. Every other conversion of it is an Error with its name.
  struct Opaque {
    std::string name;  // "argparse.Namespace", "tensor of torch.complex64"
  };
  /// An enumerator, as LibTorch shows it: `toEnumHolder()->name()`.
  class RAMET_API EnumHolder;

  IValue() = default;
  IValue(const IValue&) = default;
  /// What has been moved from is None:
  IValue(IValue&& o) noexcept : value_(std::exchange(o.value_, std::monostate())) {}
  IValue& operator=(const IValue&) = default;
  IValue& operator=(IValue&& o) noexcept {
    value_ = std::exchange(o.value_, std::monostate());
    return *this;
  }
  ~IValue() = default;
  IValue(double v) : value_(v) {}
  IValue(float v) : value_(static_cast<double>(v)) {}
  IValue(int64_t v) : value_(v) {}
  IValue(int v) : value_(static_cast<int64_t>(v)) {}
  IValue(bool v) : value_(v) {}
  IValue(std::string v);
  IValue(const char* v);
  IValue(Tensor v) : value_(std::move(v)) {}
  IValue(const Scalar& v);
  IValue(std::vector<int64_t> v);
  IValue(IntArrayRef v);
  IValue(std::vector<double> v);
  IValue(std::vector<Tensor> v);
  IValue(List<int64_t> v);
  IValue(List<double> v);
  IValue(List<bool> v);
  IValue(List<Tensor> v);
  IValue(GenericDict v);
  IValue(GenericList v);
  IValue(TuplePtr v);
  IValue(ObjectPtr v);
  IValue(FuturePtr v);
  IValue(Device v);
  IValue(Generator v);
  IValue(Opaque v);
  /// None where it holds nothing.
  template <class T> IValue(std::optional<T> v) {
    if (v) *this = IValue(std::move(*v));
  }
  template <class... T>
  IValue(std::tuple<T...> v)
      : IValue(std::apply(
            [](auto&... item) -> TuplePtr {
              return std::make_shared<Tuple>(std::vector<IValue>{IValue(std::move(item))...});
            },
            v)) {}

  /// Is it of this kind? A Scalar is a number or a bool:
  bool isNone() const { return value_.index() == 0; }
  bool isDouble() const { return std::holds_alternative<double>(value_); }
  bool isInt() const { return std::holds_alternative<int64_t>(value_); }
  bool isBool() const { return std::holds_alternative<bool>(value_); }
  bool isTensor() const { return std::holds_alternative<Tensor>(value_); }
  bool isString() const;
  bool isIntList() const;
  bool isDoubleList() const;
  bool isBoolList() const;
  bool isTensorList() const;
  bool isScalar() const { return isDouble() || isInt() || isBool(); }
  bool isGenericDict() const;
  bool isTuple() const;
  bool isList() const;
  bool isObject() const;
  bool isFuture() const;
  bool isDevice() const;
  bool isGenerator() const;
  bool isOpaque() const;
  /// A list of any values: none of numbers, bools or tensors.
  bool isGenericList() const;
  /// An object that is a module, or an enumerator:
  bool isModule() const;
  bool isEnum() const;
  /// Of a class that C++ has registered. Always false: this library has none.
  bool isCustomClass() const { return false; }
  /// Its kind by LibTorch's name: "Tensor", "Int", "GenericList" for every list, and so on.
  std::string tagKind() const;
  /// Are both one object (Python's `is`)? Numbers and strings are where they are equal.
  bool is(const IValue& other) const;
  /// Of numbers, strings, tensors (by identity), devices, None and tuples of these. An Error of any
  /// other value.
  static size_t hash(const IValue& value);
  IValue hash() const { return static_cast<int64_t>(hash(*this)); }

  /// The value; an Error where it is of another kind:
  double toDouble() const { return small<double>("double"); }
  int64_t toInt() const { return small<int64_t>("int"); }
  bool toBool() const { return small<bool>("bool"); }
  const Tensor& toTensor() const { return small<Tensor>("Tensor"); }
  const std::string& toStringRef() const;
  std::string_view toStringView() const { return toStringRef(); }
  Device toDevice() const;
  const Generator& toGenerator() const;
  const ObjectPtr& toObject() const;
  Object& toObjectRef() const { return *toObject(); }
  EnumHolder toEnumHolder() const;
  const FuturePtr& toFuture() const;
  const std::vector<int64_t>& toIntVector() const;
  const std::vector<double>& toDoubleVector() const;
  const std::vector<Tensor>& toTensorVector() const;
  Scalar toScalar() const;
  /// The module that a value of a script is. The library :script has this, and deepcopy().
  jit::Module toModule() const;
  /// A copy with its own tensors, lists and objects; what was shared inside is shared in the copy.
  IValue deepcopy(std::optional<Device> device = std::nullopt) const;
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
  List<bool> toBoolList() const;
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
    if constexpr (Parts<T>::known) return Parts<T>::of(*this);
    else if constexpr (std::is_same<T, bool>::value) return toBool();
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
    else if constexpr (std::is_same<T, List<bool>>::value) return toBoolList();
    else if constexpr (std::is_same<T, List<Tensor>>::value) return toTensorList();
    else if constexpr (std::is_same<T, Device>::value) return toDevice();
    else if constexpr (std::is_same<T, IValue>::value) return *this;
    else if constexpr (std::is_same<T, GenericDict>::value) return toGenericDict();
    else if constexpr (std::is_same<T, GenericList>::value) return toList();
    else static_assert(sizeof(T) == 0, "IValue::to<T>: no value is of that type");
  }
  /// The value, or nothing where this is None.
  template <class T> std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  /// Prints as LibTorch does: "None", "True", "3", "3.", "text", "[1, 2]", "(1, 2)", "{a: 1}",
  /// tensors and devices as they print; "<argparse.Namespace>". A value inside itself prints as
  /// "...", and so does one deeper than 256 levels.
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const IValue& value);
  friend struct detail::DictLess<IValue>;

 private:
  struct Held;
  struct Shown;
  // Types with values inside: of the language's optionals, lists, tuples and dictionaries.
  template <class T> struct Parts { static constexpr bool known = false; };
  template <class T> const T& small(const char* wanted) const {
    if (const T* v = std::get_if<T>(&value_)) return *v;
    wrong(wanted);
  }
  [[noreturn, gnu::cold]] void wrong(const char* wanted) const;
  [[noreturn, gnu::cold]] static void wrong_size(size_t got, size_t expected);
  size_t kind() const;
  template <class T> const T* held() const;
  template <class T> List<T> list_of(const char* wanted) const;
  template <class T> const T& get(const char* wanted) const;
  // What is held never changes, so copies share it.
  std::variant<std::monostate, bool, int64_t, double, Tensor, std::shared_ptr<const Held>> value_;
};

class RAMET_API IValue::Future {
 public:
  /// Holds a value, or the exception that the call ended with:
  explicit Future(IValue value) : value_(std::move(value)) {}
  explicit Future(std::exception_ptr error) : error_(std::move(error)) {}
  /// Always true.
  bool completed() const { return true; }
  /// Did it end with an exception?
  bool hasError() const { return error_ != nullptr; }
  /// The value. Throws the exception if there was one.
  const IValue& value() const {
    if (error_) std::rethrow_exception(error_);
    return value_;
  }

 private:
  IValue value_;
  std::exception_ptr error_;
};

class RAMET_API IValue::EnumHolder {
 public:
  explicit EnumHolder(ObjectPtr object) : object_(std::move(object)) {}
  /// "RED", and the value that the class gives it:
  std::string name() const { return object_->getAttr("name").toStringRef(); }
  IValue value() const { return object_->getAttr("value"); }
  /// "__torch__.net.Color", and "Color":
  const std::string& qualifiedClassName() const { return object_->class_name(); }
  std::string unqualifiedClassName() const {
    return object_->class_name().substr(object_->class_name().rfind('.') + 1);
  }
  const EnumHolder* operator->() const { return this; }

 private:
  ObjectPtr object_;
};

template <class T> struct IValue::Parts<std::optional<T>> {
  static constexpr bool known = true;
  static std::optional<T> of(const IValue& value) { return value.toOptional<T>(); }
};
template <class T> struct IValue::Parts<std::vector<T>> {
  static constexpr bool known =
      !std::is_same_v<T, int64_t> && !std::is_same_v<T, double> && !std::is_same_v<T, Tensor>;
  static std::vector<T> of(const IValue& value) {
    const GenericList items = value.toList();
    std::vector<T> made;
    for (const IValue& item : items.vec()) made.push_back(item.to<T>());
    return made;
  }
};
template <class K, class V> struct IValue::Parts<Dict<K, V>> {
  static constexpr bool known = !std::is_same_v<Dict<K, V>, GenericDict>;
  static Dict<K, V> of(const IValue& value) {
    Dict<K, V> made;
    for (const auto& entry : value.toGenericDict())
      made.insert(entry.key().template to<K>(), entry.value().template to<V>());
    return made;
  }
};
template <class... T> struct IValue::Parts<std::tuple<T...>> {
  static constexpr bool known = true;
  static std::tuple<T...> of(const IValue& value) {
    return of(value.toTupleRef().elements(), std::index_sequence_for<T...>());
  }
  template <size_t... i>
  static std::tuple<T...> of(const std::vector<IValue>& items, std::index_sequence<i...>) {
    if (items.size() != sizeof...(T)) wrong_size(items.size(), sizeof...(T));
    return {items[i].to<T>()...};
  }
};

namespace impl {
using GenericDict = IValue::GenericDict;
using GenericList = IValue::GenericList;
}  // namespace impl

}  // namespace ramet
