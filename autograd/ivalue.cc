#include "autograd/ivalue.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>
#include <variant>

namespace ramet {
namespace {

// Prints all digits of a number, and a point where a whole number would look like an integer.
void show(std::ostream& out, double x) {
  auto text = detail::classic<std::ostringstream>();
  text.precision(std::numeric_limits<double>::max_digits10);
  text << x;
  out << text.str();
  if (std::isfinite(x) && text.str().find_first_of(".e") == std::string::npos) out << '.';
}

}  // namespace

struct IValue::Held {
  std::variant<double, int64_t, bool, std::string, Tensor, List<int64_t>, List<double>,
               List<Tensor>, GenericDict, GenericList, TuplePtr, Opaque>
      value;
};

// The list, tuple or dictionary that is being printed; `around` is the one that contains it.
struct IValue::Shown {
  static constexpr int kMaxDepth = 256;
  std::ostream& out;
  const void* what;
  const Shown* around;
  int depth;

  void operator()(double x) const { show(out, x); }
  void operator()(int64_t x) const { out << x; }
  void operator()(bool x) const { out << (x ? "True" : "False"); }
  void operator()(const std::string& x) const { out << x; }
  void operator()(const Tensor& x) const { out << x; }
  void operator()(const Opaque& x) const { out << '<' << x.name << '>'; }
  void operator()(const IValue& x) const {
    if (x.isNone()) out << "None";
    else std::visit(*this, x.held_->value);
  }
  template <class T> void items(const std::vector<T>& list) const {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out << ", ";
      (*this)(list[i]);
    }
  }
  // Calls f(), which prints what `of` holds.
  template <class F>
  void nested(const void* of, const char* open, const char* close, const F& f) const {
    out << open;
    bool again = depth >= kMaxDepth;
    for (const Shown* s = this; s && !again; s = s->around) again = s->what == of;
    if (again) out << "...";
    else f(Shown{out, of, this, depth + 1});
    out << close;
  }
  template <class T> void operator()(const List<T>& list) const {
    nested(&list.vec(), "[", "]", [&](const Shown& inner) { inner.items(list.vec()); });
  }
  void operator()(const TuplePtr& tuple) const {
    nested(tuple.get(), "(", tuple->size() == 1 ? ",)" : ")",
           [&](const Shown& inner) { inner.items(tuple->elements()); });
  }
  void operator()(const GenericDict& dict) const {
    nested(dict.id(), "{", "}", [&](const Shown& inner) {
      const char* between = "";
      for (const auto& entry : dict) {
        out << between;
        inner(entry.key());
        out << ": ";
        inner(entry.value());
        between = ", ";
      }
    });
  }
};

namespace {
const char* const kNames[] = {"double",      "int",         "bool", "string", "Tensor", "int list",
                              "double list", "tensor list", "dict", "list",   "tuple",  "opaque"};
}

IValue::IValue(double v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(float v) : held_(std::make_shared<Held>(Held{static_cast<double>(v)})) {}
IValue::IValue(int64_t v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(int v) : held_(std::make_shared<Held>(Held{static_cast<int64_t>(v)})) {}
IValue::IValue(bool v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(std::string v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(const char* v) : held_(std::make_shared<Held>(Held{std::string(v)})) {}
IValue::IValue(Tensor v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(std::vector<int64_t> v) : IValue(List<int64_t>(std::move(v))) {}
IValue::IValue(List<int64_t> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(IntArrayRef v) : IValue(v.vec()) {}
IValue::IValue(std::vector<double> v) : IValue(List<double>(std::move(v))) {}
IValue::IValue(List<double> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(std::vector<Tensor> v) : IValue(List<Tensor>(std::move(v))) {}
IValue::IValue(List<Tensor> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(GenericDict v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(GenericList v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(TuplePtr v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(Opaque v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(const Scalar& v)
    : IValue(v.isFloatingPoint() ? IValue(v.toDouble())
             : v.isBoolean()     ? IValue(v.toBool())
                                 : IValue(v.toLong())) {}

template <class T> bool IValue::is() const {
  return held_ && std::holds_alternative<T>(held_->value);
}
template <class T> const T& IValue::get(const char* wanted) const {
  RAMET_CHECK(is<T>() || !isOpaque(), "IValue", "got ", *this,
              ", which a file has and this library cannot hold, expected ", wanted);
  RAMET_CHECK(is<T>(), "IValue", "got ", held_ ? kNames[held_->value.index()] : "None",
              ", expected ", wanted);
  return std::get<T>(held_->value);
}

bool IValue::isNone() const { return !held_; }
bool IValue::isDouble() const { return is<double>(); }
bool IValue::isInt() const { return is<int64_t>(); }
bool IValue::isBool() const { return is<bool>(); }
bool IValue::isString() const { return is<std::string>(); }
bool IValue::isTensor() const { return is<Tensor>(); }
bool IValue::isIntList() const { return is<List<int64_t>>(); }
bool IValue::isDoubleList() const { return is<List<double>>(); }
bool IValue::isTensorList() const { return is<List<Tensor>>(); }
bool IValue::isGenericDict() const { return is<GenericDict>(); }
bool IValue::isTuple() const { return is<TuplePtr>(); }
bool IValue::isOpaque() const { return is<Opaque>(); }
bool IValue::isList() const {
  return isIntList() || isDoubleList() || isTensorList() || is<GenericList>();
}

double IValue::toDouble() const { return get<double>("double"); }
int64_t IValue::toInt() const { return get<int64_t>("int"); }
bool IValue::toBool() const { return get<bool>("bool"); }
const std::string& IValue::toStringRef() const { return get<std::string>("string"); }
const Tensor& IValue::toTensor() const { return get<Tensor>("Tensor"); }
const std::vector<int64_t>& IValue::toIntVector() const {
  return get<List<int64_t>>("int list").vec();
}
const std::vector<double>& IValue::toDoubleVector() const {
  return get<List<double>>("double list").vec();
}
const std::vector<Tensor>& IValue::toTensorVector() const {
  return get<List<Tensor>>("tensor list").vec();
}
template <class T> List<T> IValue::list_of(const char* wanted) const {
  if (!is<GenericList>()) return get<List<T>>(wanted);
  List<T> made;
  for (const IValue& item : toListRef()) made.push_back(item.to<T>());
  return made;
}
List<int64_t> IValue::toIntList() const { return list_of<int64_t>("int list"); }
List<double> IValue::toDoubleList() const { return list_of<double>("double list"); }
List<Tensor> IValue::toTensorList() const { return list_of<Tensor>("tensor list"); }
const IValue::GenericDict& IValue::toGenericDict() const { return get<GenericDict>("dict"); }
const IValue::TuplePtr& IValue::toTuple() const { return get<TuplePtr>("tuple"); }
ArrayRef<IValue> IValue::toListRef() const { return get<GenericList>("list").vec(); }
const IValue::Opaque& IValue::toOpaque() const { return get<Opaque>("opaque"); }
Scalar IValue::toScalar() const {
  if (isInt()) return toInt();
  if (isBool()) return toBool();
  return toDouble();
}

bool detail::DictLess<IValue>::operator()(const IValue& a, const IValue& b) const {
  for (const IValue* v : {&a, &b}) {
    RAMET_CHECK(v->isNone() || v->isScalar() || v->isString(), "Dict", "key: got a ",
                kNames[v->held_->value.index()], ", expected a number, a bool, a string or None");
  }
  const auto kind = [](const IValue& v) { return v.held_ ? v.held_->value.index() + 1 : 0; };
  if (kind(a) != kind(b)) return kind(a) < kind(b);
  if (a.isString()) return a.toStringRef() < b.toStringRef();
  if (a.isInt()) return a.toInt() < b.toInt();
  if (a.isBool()) return a.toBool() < b.toBool();
  if (!a.isDouble()) return false;
  const double x = a.toDouble(), y = b.toDouble();  // a NaN is above all
  return x < y || (std::isnan(y) && !std::isnan(x));
}

IValue::GenericList IValue::toList() const {
  if (is<GenericList>()) return get<GenericList>("list");
  GenericList made;
  const auto take = [&](const auto& list) {
    for (const auto& item : list) made.push_back(item);
  };
  if (isIntList()) take(toIntVector());
  else if (isDoubleList()) take(toDoubleVector());
  else if (isTensorList()) take(toTensorVector());
  else (void)get<GenericList>("list");
  return made;
}

std::ostream& operator<<(std::ostream& out, const IValue& value) {
  const detail::ClassicScope classic(out);
  IValue::Shown{out, nullptr, nullptr, 0}(value);
  return out;
}

}  // namespace ramet
