// Values of the file with several names: what the code changes in them, and what has no C++ here.
#include <algorithm>

#include "nn/script/archive_internal.h"
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

constexpr int kMostDepth = 100;            // of values inside each other
constexpr size_t kMostValues = 1'000'000;  // of all attributes

/// The number of items in a list of numbers; none of another value.
std::optional<size_t> count_of_numbers(const IValue& value) {
  if (value.isIntList()) return value.toIntVector().size();
  if (value.isDoubleList()) return value.toDoubleVector().size();
  if (value.isBoolList()) return value.toBoolList().size();
  return std::nullopt;
}

}  // namespace

// Is it, or something in it, changed by the code? A class that holds itself counts as changed.
bool ModuleWriter::is_mutable(const TypePtr& type) const {
  if (words.is_shared(type)) return true;
  if (const ClassInfo* const info = type->info()) {
    auto [at, is_new] = mutable_.emplace(info, true);
    if (is_new) {
      const bool found =
          std::any_of(info->attributes.begin(), info->attributes.end(),
                      [&](const ClassInfo::Attribute& attribute) {
                        return is_assigned(info, attribute.name) || is_mutable(attribute.type);
                      });
      at->second = found;
    }
    if (at->second) return true;
  }
  return std::any_of(type->elements().begin(), type->elements().end(),
                     [&](const TypePtr& element) { return is_mutable(element); });
}

// Does the code assign to its attributes, or to those of modules in it?
bool ModuleWriter::is_assigned(const Object& object) const {
  auto [at, is_new] = assigns_.emplace(&object, false);
  if (!is_new) return at->second;
  const auto& attributes = object.info()->attributes;
  for (size_t i = 0; i < attributes.size() && !at->second; ++i) {
    const auto child = module_in(object.slots[i]);
    at->second = child ? is_assigned(*child) : is_assigned(object.info(), attributes[i].name);
  }
  return at->second;
}

// What keeps a value of the file out of C++; empty where nothing does. A value that the code
// changes would become two where another value holds it, too. `inside`: of another value.
std::string ModuleWriter::trouble_of(const IValue& value, const TypePtr& type,
                                     const std::string& path, int inside) {
  if (inside > kMostDepth)
    return "got values nested deeper than " + std::to_string(kMostDepth) + ", expected fewer";
  const auto numbers = count_of_numbers(value);
  values_ += 1 + numbers.value_or(0);
  if (values_ > kMostValues)
    return "got more than " + std::to_string(kMostValues) + " values in all, expected fewer";
  if (type->kind() == Kind::kOptional)
    return value.isNone() ? "" : trouble_of(value, type->element(), path, inside);
  if (const void* const id = is_mutable(type) ? identity(value) : nullptr) {
    const auto [known, is_new] = held_.emplace(id, std::pair(path, inside == 0));
    // The struct makes two attributes one.
    if (!is_new && inside == 0 && known->second.second) return "";
    if (!is_new)
      return "got a " + type->text() + " that " + known->second.first +
             " holds, too, and that the code changes; expected one place for it";
  }
  if (numbers) return "";
  std::string found;
  const auto item = [&](const IValue& one, const TypePtr& of) {
    found = trouble_of(one, of, path, inside + 1);
    return found.empty();
  };
  if (type->kind() == Kind::kList && value.isList()) {
    const IValue::GenericList items = value.toList();
    for (const IValue& one : items.vec())
      if (!item(one, type->element())) break;
  } else if (type->kind() == Kind::kTuple && value.isTuple()) {
    const std::vector<IValue>& items = value.toTupleRef().elements();
    for (size_t i = 0; i < std::min(items.size(), type->elements().size()); ++i)
      if (!item(items[i], type->element(i))) break;
  } else if (type->kind() == Kind::kDict && value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict())
      if (!item(entry.key(), type->element(0)) || !item(entry.value(), type->element(1))) break;
  } else if (type->kind() == Kind::kClass || type->kind() == Kind::kEnum) {
    const auto object = object_in(value);
    if (!object || object->info() != type->info()) return "";
    const std::vector<ClassInfo::Attribute>& attributes = object->info()->attributes;
    for (size_t i = 0; i < attributes.size(); ++i)
      if (!item(object->slots[i], attributes[i].type)) break;
  }
  return found;
}

}  // namespace ramet::script
