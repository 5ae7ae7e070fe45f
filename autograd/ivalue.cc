#include "autograd/ivalue.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>

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
void show(std::ostream& out, std::monostate) { out << "None"; }
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

IValue::IValue() = default;
IValue::IValue(const IValue& other) = default;
IValue::IValue(IValue&& other) noexcept = default;
IValue& IValue::operator=(const IValue& other) = default;
IValue& IValue::operator=(IValue&& other) noexcept = default;
IValue::~IValue() = default;
IValue::IValue(double v) : value_(v) {}
IValue::IValue(float v) : value_(static_cast<double>(v)) {}
IValue::IValue(int64_t v) : value_(v) {}
IValue::IValue(int v) : value_(static_cast<int64_t>(v)) {}
IValue::IValue(bool v) : value_(v) {}
IValue::IValue(std::string v) : value_(std::move(v)) {}
IValue::IValue(const char* v) : value_(std::string(v)) {}
IValue::IValue(Tensor v) : value_(std::move(v)) {}
IValue::IValue(const Scalar& v) {
  if (v.isFloatingPoint()) value_ = v.toDouble();
  else if (v.isBoolean()) value_ = v.toBool();
  else value_ = v.toLong();
}
IValue::IValue(std::vector<int64_t> v) : value_(std::move(v)) {}
IValue::IValue(IntArrayRef v) : value_(v.vec()) {}
IValue::IValue(std::vector<double> v) : value_(std::move(v)) {}
IValue::IValue(std::vector<Tensor> v) : value_(std::move(v)) {}
IValue::IValue(GenericDict v) : value_(std::move(v)) {}
IValue::IValue(GenericList v) : value_(std::move(v)) {}
IValue::IValue(TuplePtr v) : value_(std::move(v)) {}

template <class T> bool IValue::is() const { return std::holds_alternative<T>(value_); }
template <class T> const T& IValue::get(const char* wanted) const {
  static const char* const names[] = {"None",        "double", "int",      "bool",
                                      "string",      "Tensor", "int list", "double list",
                                      "tensor list", "dict",   "list",     "tuple"};
  RAMET_CHECK(is<T>(), "IValue", "got ", names[value_.index()], ", expected ", wanted);
  return std::get<T>(value_);
}

bool IValue::isNone() const { return is<std::monostate>(); }
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
  if (a.value_.index() != b.value_.index()) return a.value_.index() < b.value_.index();
  if (a.isString()) return a.toStringRef() < b.toStringRef();
  if (a.isInt()) return a.toInt() < b.toInt();
  if (a.isBool()) return a.toBool() < b.toBool();
  if (!a.isDouble()) return false;
  const double x = a.toDouble(), y = b.toDouble();  // a NaN is above all
  return x < y || (std::isnan(y) && !std::isnan(x));
}

IValue::GenericList IValue::toList() const {
  if (is<GenericList>()) return std::get<GenericList>(value_);
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
  std::visit([&](const auto& held) { show(out, held); }, value.value_);
  return out;
}

}  // namespace ramet
