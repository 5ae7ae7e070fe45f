#include <utility>

#include "autograd/schema/type_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

// Types share their parts, so a text of n lines could make one of 2^n parts. Comparisons and texts
// visit every part.
constexpr int64_t kMostParts = 10'000;
constexpr int kMostInside = 1000;

// Takes the parts of the types from `left`.
void count_parts(const std::vector<TypePtr>& types, int inside, int64_t& left) {
  left -= static_cast<int64_t>(types.size());
  RAMET_CHECK(left >= 0 && inside <= kMostInside, "torch::jit", "a type: got more than ",
              left < 0 ? kMostParts : kMostInside, left < 0 ? " parts" : " types inside each other",
              ", expected at most so many");
  for (const TypePtr& type : types)
    if (!type->elements().empty()) count_parts(type->elements(), inside + 1, left);
}

std::string joined(const std::vector<TypePtr>& types) {
  std::string text;
  for (const TypePtr& t : types) text += (text.empty() ? "" : ", ") + t->text();
  return text;
}

bool has_member(const std::vector<TypePtr>& types, const TypePtr& type) {
  for (const TypePtr& t : types)
    if (same(t, type)) return true;
  return false;
}

bool all_same(const std::vector<TypePtr>& a, const std::vector<TypePtr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

// Members in any order.
bool same_members(const std::vector<TypePtr>& a, const std::vector<TypePtr>& b) {
  if (a.size() != b.size()) return false;
  for (const TypePtr& t : a)
    if (!has_member(b, t)) return false;
  return true;
}

// What a value of a union, an optional or any other type may be.
std::vector<TypePtr> alternatives(const TypePtr& type) {
  if (type->kind() == Kind::kUnion) return type->elements();
  if (type->kind() != Kind::kOptional) return {type};
  std::vector<TypePtr> members = alternatives(type->element());
  members.push_back(Type::of(Kind::kNone));
  return members;
}

bool is_tuple_subtype(const Type& a, const Type& b) {
  // A NamedTuple may be used as a plain tuple, but not the reverse.
  if (!b.name().empty() && (a.name() != b.name() || a.fields() != b.fields())) return false;
  if (a.elements().size() != b.elements().size()) return false;
  for (size_t i = 0; i < a.elements().size(); ++i)
    if (!is_subtype(a.element(i), b.element(i))) return false;
  return true;
}

TypePtr unify_tuples(const Type& a, const Type& b) {
  if (a.elements().size() != b.elements().size()) return nullptr;
  std::vector<TypePtr> elements;
  for (size_t i = 0; i < a.elements().size(); ++i) {
    TypePtr element = unify(a.element(i), b.element(i));
    if (!element) return nullptr;
    elements.push_back(std::move(element));
  }
  return Type::tuple(std::move(elements));
}

}  // namespace

Type::Type(Kind kind, std::vector<TypePtr> elements, std::string name,
           std::vector<std::string> fields, ClassInfo* info)
    : kind_(kind),
      elements_(std::move(elements)),
      name_(std::move(name)),
      fields_(std::move(fields)),
      info_(info) {
  int64_t left = kMostParts;
  count_parts(elements_, 1, left);
}

std::string Type::text() const {
  switch (kind_) {
    case Kind::kAny: return "Any";
    case Kind::kNone: return "NoneType";
    case Kind::kTensor: return "Tensor";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kBool: return "bool";
    case Kind::kNumber: return "number";
    case Kind::kString: return "str";
    case Kind::kDevice: return "Device";
    case Kind::kGenerator: return "Generator";
    case Kind::kList: return "List[" + joined(elements_) + "]";
    case Kind::kDict: return "Dict[" + joined(elements_) + "]";
    case Kind::kTuple:
      if (!name_.empty()) return name_;
      return elements_.empty() ? "Tuple[()]" : "Tuple[" + joined(elements_) + "]";
    case Kind::kOptional: return "Optional[" + joined(elements_) + "]";
    case Kind::kUnion: return "Union[" + joined(elements_) + "]";
    case Kind::kFuture: return "Future[" + joined(elements_) + "]";
    case Kind::kClass:
    case Kind::kInterface:
    case Kind::kEnum:
    case Kind::kVariable: return name_;
  }
  return "";
}

const TypePtr& Type::of(Kind kind) {
  static const auto* types = [] {
    auto* made = new std::vector<TypePtr>;
    for (int k = 0; k <= static_cast<int>(Kind::kGenerator); ++k)
      made->push_back(TypePtr(new Type(static_cast<Kind>(k), {}, {}, {}, nullptr)));
    return made;
  }();
  return types->at(static_cast<size_t>(kind));
}

TypePtr Type::list(TypePtr element) {
  return TypePtr(new Type(Kind::kList, {std::move(element)}, {}, {}, nullptr));
}

TypePtr Type::dict(TypePtr key, TypePtr value) {
  return TypePtr(new Type(Kind::kDict, {std::move(key), std::move(value)}, {}, {}, nullptr));
}

TypePtr Type::tuple(std::vector<TypePtr> elements) {
  return TypePtr(new Type(Kind::kTuple, std::move(elements), {}, {}, nullptr));
}

TypePtr Type::named_tuple(std::string name, std::vector<std::string> fields,
                          std::vector<TypePtr> elements) {
  return TypePtr(
      new Type(Kind::kTuple, std::move(elements), std::move(name), std::move(fields), nullptr));
}

TypePtr Type::optional(TypePtr element) {
  if (element->kind() == Kind::kNone || element->kind() == Kind::kOptional) return element;
  if (element->kind() == Kind::kUnion) return union_of({std::move(element), of(Kind::kNone)});
  return TypePtr(new Type(Kind::kOptional, {std::move(element)}, {}, {}, nullptr));
}

TypePtr Type::union_of(std::vector<TypePtr> elements) {
  std::vector<TypePtr> members;
  for (const TypePtr& element : elements)
    for (TypePtr& member : alternatives(element))
      if (!has_member(members, member)) members.push_back(std::move(member));
  if (members.size() == 1) return members[0];
  if (members.size() == 2)
    for (size_t i = 0; i < 2; ++i)
      if (members[i]->kind() == Kind::kNone) return optional(std::move(members[1 - i]));
  return TypePtr(new Type(Kind::kUnion, std::move(members), {}, {}, nullptr));
}

TypePtr Type::future(TypePtr element) {
  return TypePtr(new Type(Kind::kFuture, {std::move(element)}, {}, {}, nullptr));
}

TypePtr Type::class_of(std::string name, ClassInfo* info) {
  return TypePtr(new Type(Kind::kClass, {}, std::move(name), {}, info));
}

TypePtr Type::interface_of(std::string name, ClassInfo* info, Implements implements) {
  auto* type = new Type(Kind::kInterface, {}, std::move(name), {}, info);
  type->implements_ = implements;
  return TypePtr(type);
}

TypePtr Type::enum_of(std::string name, ClassInfo* info) {
  return TypePtr(new Type(Kind::kEnum, {}, std::move(name), {}, info));
}

TypePtr Type::variable(std::string name) {
  return TypePtr(new Type(Kind::kVariable, {}, std::move(name), {}, nullptr));
}

bool same(const TypePtr& a, const TypePtr& b) {
  if (a == b) return true;
  if (a->kind() != b->kind()) return false;
  switch (a->kind()) {
    case Kind::kClass:
    case Kind::kInterface:
    case Kind::kEnum:
      // Two archives may each have a class of that name.
      return a->name() == b->name() && a->info() == b->info();
    case Kind::kVariable: return a->name() == b->name();
    case Kind::kUnion: return same_members(a->elements(), b->elements());
    case Kind::kTuple:
      return a->name() == b->name() && a->fields() == b->fields() &&
             all_same(a->elements(), b->elements());
    default: return all_same(a->elements(), b->elements());
  }
}

bool is_subtype(const TypePtr& a, const TypePtr& b) {
  if (b->kind() == Kind::kAny || same(a, b)) return true;
  if (a->kind() == Kind::kUnion || a->kind() == Kind::kOptional) {
    for (const TypePtr& member : alternatives(a))
      if (!is_subtype(member, b)) return false;
    return true;
  }
  switch (b->kind()) {
    case Kind::kOptional: return a->kind() == Kind::kNone || is_subtype(a, b->element());
    case Kind::kUnion:
      for (const TypePtr& member : b->elements())
        if (is_subtype(a, member)) return true;
      return false;
    case Kind::kNumber:
      return a->kind() == Kind::kInt || a->kind() == Kind::kFloat || a->kind() == Kind::kBool;
    case Kind::kTuple: return a->kind() == Kind::kTuple && is_tuple_subtype(*a, *b);
    case Kind::kFuture: return a->kind() == Kind::kFuture && is_subtype(a->element(), b->element());
    case Kind::kInterface:
      return (a->kind() == Kind::kClass || a->kind() == Kind::kInterface) &&
             (!b->implements() || (a->info() && b->implements()(*a->info(), *b->info())));
    default: return false;
  }
}

TypePtr unify(const TypePtr& a, const TypePtr& b) {
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (a->kind() == Kind::kNone) return Type::optional(b);
  if (b->kind() == Kind::kNone) return Type::optional(a);
  if (a->kind() == Kind::kOptional || b->kind() == Kind::kOptional) {
    const TypePtr& left = a->kind() == Kind::kOptional ? a->element() : a;
    const TypePtr& right = b->kind() == Kind::kOptional ? b->element() : b;
    TypePtr element = unify(left, right);
    return element ? Type::optional(std::move(element)) : nullptr;
  }
  if (a->kind() != b->kind()) return nullptr;
  if (a->kind() == Kind::kTuple) return unify_tuples(*a, *b);
  if (a->kind() == Kind::kFuture) {
    TypePtr element = unify(a->element(), b->element());
    return element ? Type::future(std::move(element)) : nullptr;
  }
  return nullptr;
}

}  // namespace ramet::script
