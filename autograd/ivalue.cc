#include "autograd/ivalue.h"

#include <cmath>
#include <functional>
#include <limits>
#include <new>
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

// Note [Releasing nested values]
// A value may hold a value that holds a value, and so on: a million objects in a chain. To release
// each inside of the one that holds it would need a stack of that depth. So below kInside levels a
// value waits until the outermost one has been released.
struct IValue::Held {
  static constexpr int kInside = 100;
  using Variant =
      std::variant<std::string, List<int64_t>, List<double>, List<bool>, List<Tensor>, GenericDict,
                   GenericList, TuplePtr, ObjectPtr, FuturePtr, Device, Generator, Opaque>;
  Variant value;

  template <class T> explicit Held(T v) : value(std::move(v)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();
};

IValue::Held::~Held() {
  // What this thread is releasing: the outermost call has it on its stack.
  struct Releasing {
    int inside = 0;
    std::vector<Variant> later;
  };
  thread_local Releasing* outermost = nullptr;
  if (outermost) {
    if (outermost->inside >= kInside) try {
        outermost->later.push_back(std::move(value));
        return;
      } catch (const std::bad_alloc&) {}
    ++outermost->inside;
    { const Variant released = std::move(value); }
    --outermost->inside;
    return;
  }
  Releasing mine;
  outermost = &mine;
  mine.inside = 1;
  { const Variant released = std::move(value); }
  while (!mine.later.empty()) {
    const Variant released = std::move(mine.later.back());
    mine.later.pop_back();
  }
  outermost = nullptr;
}

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
  void operator()(const ObjectPtr& x) const { x->print(out); }
  void operator()(const Device& x) const { out << x; }
  void operator()(const Generator&) const { out << "<Generator>"; }
  void operator()(const FuturePtr& future) const {
    nested(future.get(), "Future(", ")", [&](const Shown& inner) {
      if (future->hasError()) out << "error";
      else inner(future->value());
    });
  }
  void operator()(std::monostate) const { out << "None"; }
  void operator()(const std::shared_ptr<const Held>& x) const { std::visit(*this, x->value); }
  void operator()(const IValue& x) const { std::visit(*this, x.value_); }
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
  void items(const std::vector<bool>& list) const {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out << ", ";
      (*this)(static_cast<bool>(list[i]));
    }
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

// Of the kinds in value_, then of those in Held: for errors, and as LibTorch calls them.
struct KindName {
  const char *ours, *tag;
};
constexpr KindName kNames[] = {
    {"None", "None"},
    {"bool", "Bool"},
    {"int", "Int"},
    {"double", "Double"},
    {"Tensor", "Tensor"},
    {"string", "String"},
    {"int list", "GenericList"},
    {"double list", "GenericList"},
    {"bool list", "GenericList"},
    {"tensor list", "GenericList"},
    {"dict", "GenericDict"},
    {"list", "GenericList"},
    {"tuple", "Tuple"},
    {"object", "Object"},
    {"future", "Future"},
    {"device", "Device"},
    {"generator", "Generator"},
    {"opaque", "Opaque"},
};

}  // namespace

// The place of its name in kNames.
size_t IValue::kind() const {
  constexpr size_t kHeld = std::variant_size_v<decltype(value_)> - 1;
  static_assert(std::size(kNames) == kHeld + std::variant_size_v<decltype(Held::value)>);
  return value_.index() < kHeld ? value_.index() : kHeld + std::get<kHeld>(value_)->value.index();
}

#define RAMET_HOLDS(type) \
  IValue::IValue(type v) : value_(std::make_shared<const Held>(std::move(v))) {}
RAMET_HOLDS(std::string)
RAMET_HOLDS(List<int64_t>)
RAMET_HOLDS(List<double>)
RAMET_HOLDS(List<bool>)
RAMET_HOLDS(List<Tensor>)
RAMET_HOLDS(GenericDict)
RAMET_HOLDS(GenericList)
RAMET_HOLDS(Device)
RAMET_HOLDS(Generator)
RAMET_HOLDS(Opaque)
#undef RAMET_HOLDS
// A pointer that is null is None: no reader has to ask.
#define RAMET_HOLDS_POINTER(type)                               \
  IValue::IValue(type v) {                                      \
    if (v) value_ = std::make_shared<const Held>(std::move(v)); \
  }
RAMET_HOLDS_POINTER(TuplePtr)
RAMET_HOLDS_POINTER(ObjectPtr)
RAMET_HOLDS_POINTER(FuturePtr)
#undef RAMET_HOLDS_POINTER
IValue::IValue(const char* v) : IValue(std::string(v)) {}
IValue::IValue(std::vector<int64_t> v) : IValue(List<int64_t>(std::move(v))) {}
IValue::IValue(IntArrayRef v) : IValue(v.vec()) {}
IValue::IValue(std::vector<double> v) : IValue(List<double>(std::move(v))) {}
IValue::IValue(std::vector<Tensor> v) : IValue(List<Tensor>(std::move(v))) {}
IValue::IValue(const Scalar& v)
    : IValue(v.isFloatingPoint() ? IValue(v.toDouble())
             : v.isBoolean()     ? IValue(v.toBool())
                                 : IValue(v.toLong())) {}

IValue::Object::~Object() = default;
void IValue::Object::print(std::ostream& out) const { out << '<' << class_name() << " object>"; }
IValue IValue::Object::getAttr(const std::string& name) const {
  fail("IValue::Object::getAttr", class_name(), " has no attribute '", name, "'");
}
void IValue::Object::setAttr(const std::string& name, IValue) {
  fail("IValue::Object::setAttr", class_name(), " has no attribute '", name, "'");
}

template <class T> const T* IValue::held() const {
  const auto* held = std::get_if<std::shared_ptr<const Held>>(&value_);
  return held ? std::get_if<T>(&(*held)->value) : nullptr;
}
void IValue::wrong(const char* wanted) const {
  RAMET_CHECK(!isOpaque(), "IValue", "got ", *this,
              ", which a file has and this library cannot hold, expected ", wanted);
  fail("IValue", "got ", kNames[kind()].ours, ", expected ", wanted);
}
void IValue::wrong_size(size_t got, size_t expected) {
  fail("IValue", "got a tuple of ", got, " values, expected ", expected);
}
template <class T> const T& IValue::get(const char* wanted) const {
  if (const T* v = held<T>()) return *v;
  wrong(wanted);
}

bool IValue::isString() const { return held<std::string>(); }
bool IValue::isIntList() const { return held<List<int64_t>>(); }
bool IValue::isDoubleList() const { return held<List<double>>(); }
bool IValue::isBoolList() const { return held<List<bool>>(); }
bool IValue::isTensorList() const { return held<List<Tensor>>(); }
bool IValue::isGenericDict() const { return held<GenericDict>(); }
bool IValue::isTuple() const { return held<TuplePtr>(); }
bool IValue::isObject() const { return held<ObjectPtr>(); }
bool IValue::isModule() const {
  const auto* object = held<ObjectPtr>();
  return object && (*object)->role() == Object::Role::kModule;
}
bool IValue::isEnum() const {
  const auto* object = held<ObjectPtr>();
  return object && (*object)->role() == Object::Role::kEnumerator;
}
bool IValue::isFuture() const { return held<FuturePtr>(); }
bool IValue::isDevice() const { return held<Device>(); }
bool IValue::isGenerator() const { return held<Generator>(); }
bool IValue::isOpaque() const { return held<Opaque>(); }
bool IValue::isList() const {
  return isIntList() || isDoubleList() || isBoolList() || isTensorList() || isGenericList();
}
bool IValue::isGenericList() const { return held<GenericList>(); }
std::string IValue::tagKind() const { return kNames[kind()].tag; }

bool IValue::is(const IValue& other) const {
  if (kind() != other.kind()) return false;
  if (isTensor()) return toTensor().is_same(other.toTensor());
  if (isDouble()) return toDouble() == other.toDouble();
  if (isInt()) return toInt() == other.toInt();
  if (isBool()) return toBool() == other.toBool();
  if (isNone()) return true;
  const auto* held = std::get_if<std::shared_ptr<const Held>>(&value_);
  const auto* others = std::get_if<std::shared_ptr<const Held>>(&other.value_);
  return std::visit(
      [&](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        const T& theirs = std::get<T>((*others)->value);
        if constexpr (std::is_same_v<T, Opaque>) return *held == *others;
        else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Device> ||
                           std::is_same_v<T, Generator> || std::is_same_v<T, TuplePtr> ||
                           std::is_same_v<T, ObjectPtr> || std::is_same_v<T, FuturePtr>)
          return mine == theirs;
        else return mine.is(theirs);
      },
      (*held)->value);
}

size_t IValue::hash(const IValue& value) {
  if (value.isNone()) return 0;
  if (value.isBool()) return std::hash<bool>()(value.toBool());
  if (value.isInt()) return std::hash<int64_t>()(value.toInt());
  if (value.isDouble()) return std::hash<double>()(value.toDouble());
  if (value.isString()) return std::hash<std::string>()(value.toStringRef());
  if (value.isTensor())
    return std::hash<const void*>()(value.toTensor().defined() ? value.toTensor().impl() : nullptr);
  if (value.isDevice()) return std::hash<std::string>()(value.toDevice().str());
  if (!value.isTuple()) fail("IValue::hash", "Can't hash IValues with tag '", value.tagKind(), "'");
  size_t all = value.toTupleRef().size();
  for (const IValue& item : value.toTupleRef().elements())
    all ^= hash(item) + 0x9e3779b97f4a7c15 + (all << 6) + (all >> 2);
  return all;
}

const std::string& IValue::toStringRef() const { return get<std::string>("string"); }
Device IValue::toDevice() const { return get<Device>("device"); }
const Generator& IValue::toGenerator() const { return get<Generator>("generator"); }
const IValue::ObjectPtr& IValue::toObject() const { return get<ObjectPtr>("object"); }
IValue::EnumHolder IValue::toEnumHolder() const {
  if (!isEnum()) wrong("enumerator");
  return EnumHolder(toObject());
}
const IValue::FuturePtr& IValue::toFuture() const { return get<FuturePtr>("future"); }
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
  if (!held<GenericList>()) return get<List<T>>(wanted);
  List<T> made;
  for (const IValue& item : toListRef()) made.push_back(item.to<T>());
  return made;
}
List<int64_t> IValue::toIntList() const { return list_of<int64_t>("int list"); }
List<double> IValue::toDoubleList() const { return list_of<double>("double list"); }
List<bool> IValue::toBoolList() const { return list_of<bool>("bool list"); }
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
                kNames[v->kind()].ours, ", expected a number, a bool, a string or None");
  }
  if (a.kind() != b.kind()) return a.kind() < b.kind();
  if (a.isString()) return a.toStringRef() < b.toStringRef();
  if (a.isInt()) return a.toInt() < b.toInt();
  if (a.isBool()) return a.toBool() < b.toBool();
  if (!a.isDouble()) return false;
  const double x = a.toDouble(), y = b.toDouble();  // a NaN is above all
  return x < y || (std::isnan(y) && !std::isnan(x));
}

IValue::GenericList IValue::toList() const {
  if (const auto* list = held<GenericList>()) return *list;
  GenericList made;
  const auto take = [&](const auto& list) {
    made.reserve(list.size());
    for (const auto& item : list) made.push_back(item);
  };
  if (isIntList()) take(toIntVector());
  else if (isDoubleList()) take(toDoubleVector());
  else if (isTensorList()) take(toTensorVector());
  else if (const auto* bools = held<List<bool>>())
    for (const bool item : bools->vec()) made.push_back(item);
  else wrong("list");
  return made;
}

std::ostream& operator<<(std::ostream& out, const IValue& value) {
  const detail::ClassicScope classic(out);
  IValue::Shown{out, nullptr, nullptr, 0}(value);
  return out;
}

}  // namespace ramet
