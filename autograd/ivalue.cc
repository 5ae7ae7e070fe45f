#include "autograd/ivalue.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>
#include <variant>

namespace ramet {
namespace {

// All digits of a number, and a point where a whole number would look like an integer.
void show(std::ostream& out, double x) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << x;
  out << text.str();
  if (std::isfinite(x) && text.str().find_first_of(".e") == std::string::npos) out << '.';
}
void show(std::ostream& out, int64_t x) { out << x; }
void show(std::ostream& out, bool x) { out << (x ? "True" : "False"); }
void show(std::ostream& out, const std::string& x) { out << x; }
void show(std::ostream& out, const Tensor& x) { out << x; }
void show(std::ostream& out, const IValue& x) { out << x; }
template <class T> void show_items(std::ostream& out, const std::vector<T>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out << ", ";
    show(out, list[i]);
  }
}
template <class T> void show(std::ostream& out, const std::vector<T>& list) {
  out << '[';
  show_items(out, list);
  out << ']';
}
void show(std::ostream& out, const IValue::GenericList& list) { show(out, list.vec()); }
void show(std::ostream& out, const IValue::TuplePtr& tuple) {
  out << '(';
  show_items(out, tuple->elements());
  out << (tuple->size() == 1 ? ",)" : ")");
}
void show(std::ostream& out, const IValue::GenericDict& dict) {
  out << '{';
  const char* between = "";
  for (const auto& entry : dict) {
    out << between << entry.key() << ": " << entry.value();
    between = ", ";
  }
  out << '}';
}

}  // namespace

struct IValue::Held {
  std::variant<double, int64_t, bool, std::string, Tensor, std::vector<int64_t>,
               std::vector<double>, std::vector<Tensor>, GenericDict, GenericList, TuplePtr>
      value;
};

IValue::IValue(double v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(float v) : held_(std::make_shared<Held>(Held{static_cast<double>(v)})) {}
IValue::IValue(int64_t v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(int v) : held_(std::make_shared<Held>(Held{static_cast<int64_t>(v)})) {}
IValue::IValue(bool v) : held_(std::make_shared<Held>(Held{v})) {}
IValue::IValue(std::string v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(const char* v) : held_(std::make_shared<Held>(Held{std::string(v)})) {}
IValue::IValue(Tensor v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(std::vector<int64_t> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(IntArrayRef v) : held_(std::make_shared<Held>(Held{v.vec()})) {}
IValue::IValue(std::vector<double> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(std::vector<Tensor> v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(GenericDict v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(GenericList v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(TuplePtr v) : held_(std::make_shared<Held>(Held{std::move(v)})) {}
IValue::IValue(const Scalar& v)
    : IValue(v.isFloatingPoint() ? IValue(v.toDouble())
             : v.isBoolean()     ? IValue(v.toBool())
                                 : IValue(v.toLong())) {}

template <class T> bool IValue::is() const {
  return held_ && std::holds_alternative<T>(held_->value);
}
template <class T> const T& IValue::get(const char* wanted) const {
  static const char* const names[] = {"double", "int",      "bool",        "string",
                                      "Tensor", "int list", "double list", "tensor list",
                                      "dict",   "list",     "tuple"};
  RAMET_CHECK(is<T>(), "IValue", "got ", held_ ? names[held_->value.index()] : "None",
              ", expected ", wanted);
  return std::get<T>(held_->value);
}

bool IValue::isNone() const { return !held_; }
bool IValue::isDouble() const { return is<double>(); }
bool IValue::isInt() const { return is<int64_t>(); }
bool IValue::isBool() const { return is<bool>(); }
bool IValue::isString() const { return is<std::string>(); }
bool IValue::isTensor() const { return is<Tensor>(); }
bool IValue::isIntList() const { return is<std::vector<int64_t>>(); }
bool IValue::isDoubleList() const { return is<std::vector<double>>(); }
bool IValue::isTensorList() const { return is<std::vector<Tensor>>(); }
bool IValue::isGenericDict() const { return is<GenericDict>(); }
bool IValue::isTuple() const { return is<TuplePtr>(); }
bool IValue::isList() const {
  return isIntList() || isDoubleList() || isTensorList() || is<GenericList>();
}

double IValue::toDouble() const { return get<double>("double"); }
int64_t IValue::toInt() const { return get<int64_t>("int"); }
bool IValue::toBool() const { return get<bool>("bool"); }
const std::string& IValue::toStringRef() const { return get<std::string>("string"); }
const Tensor& IValue::toTensor() const { return get<Tensor>("Tensor"); }
const std::vector<int64_t>& IValue::toIntVector() const {
  return get<std::vector<int64_t>>("int list");
}
const std::vector<double>& IValue::toDoubleVector() const {
  return get<std::vector<double>>("double list");
}
const std::vector<Tensor>& IValue::toTensorVector() const {
  return get<std::vector<Tensor>>("tensor list");
}
const IValue::GenericDict& IValue::toGenericDict() const { return get<GenericDict>("dict"); }
const IValue::TuplePtr& IValue::toTuple() const { return get<TuplePtr>("tuple"); }
ArrayRef<IValue> IValue::toListRef() const { return get<GenericList>("list").vec(); }
Scalar IValue::toScalar() const {
  if (isInt()) return toInt();
  if (isBool()) return toBool();
  return toDouble();
}

bool detail::DictLess<IValue>::operator()(const IValue& a, const IValue& b) const {
  for (const IValue* v : {&a, &b}) {
    RAMET_CHECK(v->isNone() || v->isScalar() || v->isString(), "Dict", "key: got ", *v,
                ", expected a number, a bool, a string or None");
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
  if (value.isNone()) return out << "None";
  std::visit([&](const auto& held) { show(out, held); }, value.held_->value);
  return out;
}

}  // namespace ramet
