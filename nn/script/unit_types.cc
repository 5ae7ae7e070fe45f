// Annotations as types, and which values have them.
#include <algorithm>
#include <map>

#include "autograd/schema/values_internal.h"
#include "nn/script/lexer_internal.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

struct TypeName {
  const char* name;
  Kind kind;
};
// Dtypes, layouts and memory formats are ints.
constexpr TypeName kTypes[] = {
    {"Tensor", Kind::kTensor}, {"int", Kind::kInt},         {"float", Kind::kFloat},
    {"bool", Kind::kBool},     {"number", Kind::kNumber},   {"Scalar", Kind::kNumber},
    {"str", Kind::kString},    {"Device", Kind::kDevice},   {"Generator", Kind::kGenerator},
    {"NoneType", Kind::kNone}, {"Any", Kind::kAny},         {"ScalarType", Kind::kInt},
    {"Layout", Kind::kInt},    {"MemoryFormat", Kind::kInt}};

// Types of PyTorch that this library does not have.
constexpr const char* kOthers[] = {"complex", "Stream", "Storage", "QScheme",
                                   "Capsule", "RRef",   "Await",   "PyObject"};

// Members of a union are compared with one another.
constexpr size_t kMostMembers = 100;

// "a.b.c" of attributes of a name; else nothing.
std::string dotted(const Expression& e) {
  if (e.kind == Expression::Kind::kName) return e.text;
  if (e.kind != Expression::Kind::kAttribute) return "";
  const std::string of = dotted(*e.items[0]);
  return of.empty() ? "" : of + "." + e.text;
}

TypePtr plain_type(const std::string& name, size_t offset, const Source& source) {
  for (const TypeName& t : kTypes)
    if (name == t.name) return Type::of(t.kind);
  for (const char* other : kOthers)
    if (name == other)
      fail_at(source, offset, "got the type ", name, ", which this library does not have");
  fail_at(source, offset, "got \"", name, "\", expected a type");
}

// One check. Values that share parts have many ways to a part: with each type, a part is checked
// once.
class TypeCheck {
 public:
  bool has_type(const IValue& value, const TypePtr& type);

 private:
  bool list_has_type(const IValue& value, const TypePtr& element);
  bool dict_has_type(const IValue& value, const Type& type);
  bool tuple_has_type(const IValue& value, const Type& type);
  bool items_have_type(const IValue& value, const TypePtr& type);
  std::map<std::pair<const void*, const Type*>, bool> known_;  // below the first two levels
  int depth_ = 0;
};

bool TypeCheck::list_has_type(const IValue& value, const TypePtr& element) {
  switch (element->kind()) {
    case Kind::kInt: return value.isIntList();
    case Kind::kFloat: return value.isDoubleList();
    case Kind::kBool: return value.isBoolList();
    case Kind::kTensor: return value.isTensorList();
    case Kind::kAny: return value.isList();
    default: break;
  }
  if (!value.isList() || value.isTensorList()) return false;
  const IValue::GenericList list = value.toList();
  for (size_t i = 0; i < list.size(); ++i)
    if (!has_type(list.get(i), element)) return false;
  return true;
}

bool TypeCheck::dict_has_type(const IValue& value, const Type& type) {
  if (!value.isGenericDict()) return false;
  for (const auto& entry : value.toGenericDict())
    if (!has_type(entry.key(), type.element(0)) || !has_type(entry.value(), type.element(1)))
      return false;
  return true;
}

bool TypeCheck::tuple_has_type(const IValue& value, const Type& type) {
  if (!value.isTuple()) return false;
  const IValue::Tuple& tuple = value.toTupleRef();
  if (tuple.size() != type.elements().size()) return false;
  if (!type.name().empty() && (!tuple.names() || tuple.names()->name != type.name())) return false;
  for (size_t i = 0; i < tuple.size(); ++i)
    if (!has_type(tuple.elements()[i], type.element(i))) return false;
  return true;
}

bool object_has_type(const IValue& value, const TypePtr& type) {
  const auto object = object_in(value);
  return object && is_subtype(object->info()->type, type);
}

bool TypeCheck::items_have_type(const IValue& value, const TypePtr& type) {
  const std::pair<const void*, const Type*> pair{shared_items(value), type.get()};
  if (pair.first && depth_ > 0)
    if (const auto at = known_.find(pair); at != known_.end()) return at->second;
  ++depth_;
  const bool has = type->kind() == Kind::kList   ? list_has_type(value, type->element())
                   : type->kind() == Kind::kDict ? dict_has_type(value, *type)
                                                 : tuple_has_type(value, *type);
  --depth_;
  if (pair.first && depth_ > 0) known_.emplace(pair, has);
  return has;
}

bool TypeCheck::has_type(const IValue& value, const TypePtr& type) {
  switch (type->kind()) {
    case Kind::kAny: return true;
    case Kind::kNone: return value.isNone();
    case Kind::kTensor: return value.isTensor();
    case Kind::kInt: return value.isInt();
    case Kind::kFloat: return value.isDouble();
    case Kind::kBool: return value.isBool();
    case Kind::kNumber: return value.isScalar();
    case Kind::kString: return value.isString();
    case Kind::kDevice: return value.isDevice();
    case Kind::kGenerator: return value.isGenerator();
    case Kind::kList:
    case Kind::kDict:
    case Kind::kTuple: return items_have_type(value, type);
    case Kind::kOptional: return value.isNone() || has_type(value, type->element());
    case Kind::kUnion:
      return std::any_of(type->elements().begin(), type->elements().end(),
                         [&](const TypePtr& member) { return has_type(value, member); });
    case Kind::kFuture:
      return value.isFuture() &&
             (value.toFuture()->hasError() || has_type(value.toFuture()->value(), type->element()));
    case Kind::kClass:
    case Kind::kInterface:
    case Kind::kEnum: return object_has_type(value, type);
    case Kind::kVariable: return false;
  }
  return false;
}

}  // namespace

TypePtr CompilationUnit::type_of(const Expression& annotation, const Source& source) {
  const size_t offset = annotation.offset;
  if (annotation.kind == Expression::Kind::kNone) return Type::of(Kind::kNone);
  if (annotation.kind != Expression::Kind::kSubscript) {
    const std::string name = dotted(annotation);
    if (name.empty()) fail_at(source, offset, "got an expression, expected a type");
    if (name.find('.') == std::string::npos) return plain_type(name, offset, source);
    try {
      return type_named(name);
    } catch (const Error& e) {
      if (has_type(name)) throw;
      fail_at(source, offset, "got the type \"", name, "\", which the code of the file lacks");
    }
  }
  const std::string form = dotted(*annotation.items[0]);
  std::vector<TypePtr> types;
  const bool unit = form == "Tuple" && annotation.items.size() == 2 && annotation.items[1] &&
                    annotation.items[1]->kind == Expression::Kind::kTuple &&
                    annotation.items[1]->items.empty();  // Tuple[()]
  for (size_t i = 1; i < annotation.items.size() && !unit; ++i) {
    if (annotation.items[i]->kind == Expression::Kind::kSlice)
      fail_at(source, offset, "got a slice, expected a type");
    types.push_back(type_of(*annotation.items[i], source));
  }
  const auto need = [&](size_t count) {
    if (types.size() != count) {
      fail_at(source, offset, "got ", form, " of ", types.size(), " types, expected ", count);
    }
  };
  if (form == "List") return need(1), Type::list(types[0]);
  if (form == "Dict") return need(2), Type::dict(types[0], types[1]);
  if (form == "Tuple") return Type::tuple(std::move(types));
  if (form == "Optional") return need(1), Type::optional(types[0]);
  if (form == "Future") return need(1), Type::future(types[0]);
  if (form == "Final") return need(1), types[0];
  if (form == "Union") {
    if (types.size() > kMostMembers)
      fail_at(source, offset, "got a Union of more than ", kMostMembers, " types");
    return Type::union_of(std::move(types));
  }
  plain_type(form, offset, source);
  fail_at(source, offset, "got types for ", form, ", which has none");
}

TypePtr CompilationUnit::type_of_text(const std::string& text) {
  Source source;
  source.name = "the type \"" + text.substr(0, 60) + "\"";
  source.text = text;
  return type_of(
      *parse_annotation(source, {limits_.depth, limits_.text_bytes, limits_.expressions}), source);
}

IValue::Object::Role Object::role() const {
  return info_->kind == ClassInfo::Kind::kModule ? Role::kModule
         : info_->kind == ClassInfo::Kind::kEnum ? Role::kEnumerator
                                                 : Role::kPlain;
}
IValue Object::getAttr(const std::string& name) const {
  const int64_t slot = info_->slot(name);
  if (slot < 0) return IValue::Object::getAttr(name);
  return slots[static_cast<size_t>(slot)];
}
void Object::setAttr(const std::string& name, IValue value) {
  const int64_t slot = info_->slot(name);
  if (slot < 0) return IValue::Object::setAttr(name, std::move(value));
  RAMET_CHECK(info_->kind != ClassInfo::Kind::kEnum, "IValue::Object::setAttr",
              "got an enumerator of ", info_->name, ", which cannot be changed");
  set_slot("IValue::Object::setAttr", slot, std::move(value));
}
void Object::set_slot(const char* op, int64_t slot, IValue value) {
  const auto& attribute = info_->attributes[static_cast<size_t>(slot)];
  RAMET_CHECK(has_type(value, attribute.type), op, "attribute '", attribute.name, "': got ",
              value.tagKind(), ", expected ", attribute.type->text());
  slots[static_cast<size_t>(slot)] = std::move(value);
}

std::shared_ptr<Object> object_in(const IValue& value) {
  return value.isObject() ? std::dynamic_pointer_cast<Object>(value.toObject()) : nullptr;
}
std::shared_ptr<Object> module_in(const IValue& value) {
  auto object = object_in(value);
  return object && object->info()->kind == ClassInfo::Kind::kModule ? object : nullptr;
}

bool has_type(const IValue& value, const TypePtr& type) {
  return TypeCheck().has_type(value, type);
}

}  // namespace ramet::script
