// Operators on dictionaries. Their keys are strings, ints, bools or floats.
#include <sstream>

#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

using Dict = IValue::GenericDict;

const Dict& dict(const IValue& value) { return value.toGenericDict(); }

[[noreturn]] void absent(const IValue& key) {
  auto text = detail::classic<std::ostringstream>();
  text << "[dict] KeyError: got " << key << ", expected a key of the dictionary";
  throw IndexError(text.str());
}
const IValue& at(const IValue& value, const IValue& key) {
  const auto found = dict(value).find(key);
  if (found == dict(value).end()) absent(key);
  return found->value();
}
IValue get(const IValue& value, const IValue& key, const IValue& otherwise) {
  const auto found = dict(value).find(key);
  return found == dict(value).end() ? otherwise : found->value();
}
IValue pop(const IValue& value, const IValue& key) {
  IValue item = at(value, key);
  dict(value).erase(key);
  return item;
}
IValue pop(const IValue& value, const IValue& key, const IValue& otherwise) {
  IValue item = get(value, key, otherwise);
  dict(value).erase(key);
  return item;
}
// Python takes the last entry, PyTorch the first.
IValue pop_item(const IValue& value) {
  RAMET_CHECK(!dict(value).empty(), "dict", "popitem: got an empty dictionary, expected an entry");
  const auto first = dict(value).begin();
  const IValue key = first->key();
  IValue pair = result(std::vector<IValue>{key, first->value()});
  dict(value).erase(key);
  return pair;
}
IValue set_default(const IValue& value, const IValue& key, const IValue& item) {
  return dict(value).insert(key, item).first->value();
}
void update(const IValue& value, const IValue& by) {
  const Dict added = dict(by).copy();  // it may be the same
  for (const auto& entry : added) dict(value).insert_or_assign(entry.key(), entry.value());
}
IValue from_pairs(const IValue& pairs) {
  Dict made;
  for (const IValue& pair : pairs.toListRef()) {
    const std::vector<IValue>& items = pair.toTupleRef().elements();
    RAMET_CHECK(items.size() == 2, "dict", "got a tuple of ", items.size(), ", expected a pair");
    made.insert_or_assign(items[0], items[1]);
  }
  return made;
}
// `type` of the keys: "str", "int", "bool" or "float".
IValue keys(const IValue& value, std::string_view type) {
  std::vector<IValue> made;
  for (const auto& entry : dict(value)) made.push_back(entry.key());
  const Type::Kind kind = type == "int"     ? Type::Kind::kInt
                          : type == "float" ? Type::Kind::kFloat
                          : type == "bool"  ? Type::Kind::kBool
                                            : Type::Kind::kString;
  return make_list(Type::of(kind), made);
}
// A list of any values: the compiler knows their type, and makes a list of it.
IValue values(const IValue& value) {
  std::vector<IValue> made;
  for (const auto& entry : dict(value)) made.push_back(entry.value());
  return IValue::GenericList(std::move(made));
}
IValue items(const IValue& value) {
  IValue::GenericList made;
  for (const auto& entry : dict(value))
    made.push_back(result(std::vector<IValue>{entry.key(), entry.value()}));
  return made;
}

#define RAMET_DICT(K)                                                                              \
  RAMET_LINE("aten::len.Dict_" K "(Dict(" K ", t) self) -> int",                                   \
             static_cast<int64_t>(dict(a[0]).size())),                                             \
      RAMET_LINE("aten::__getitem__.Dict_" K "(Dict(" K ", t) self, " K " key) -> t(*)",           \
                 at(a[0], a[1])),                                                                  \
      RAMET_LINE_DO("aten::_set_item." K "(Dict(" K ", t)(a!) l, " K                               \
                    "(b -> *) idx, t(c -> *) v) -> ()",                                            \
                    dict(a[0]).insert_or_assign(a[1], a[2])),                                      \
      RAMET_LINE("aten::__contains__." K "(Dict(" K ", t) dict, " K " key) -> bool",               \
                 dict(a[0]).contains(a[1])),                                                       \
      RAMET_LINE_DO("aten::Delete.Dict_" K "(Dict(" K ", t)(a!) self, " K " key) -> ()",           \
                    pop(a[0], a[1])),                                                              \
      RAMET_LINE_DO("aten::clear." K "(Dict(" K ", t)(a!) self) -> ()", dict(a[0]).clear()),       \
      RAMET_LINE("aten::copy.Dict_" K "(Dict(" K ", t)(a) self) -> Dict(" K ", t)",                \
                 dict(a[0]).copy()),                                                               \
      RAMET_LINE("aten::dict." K "((" K ", tVal)[] inputs) -> Dict(" K ", tVal)",                  \
                 from_pairs(a[0])),                                                                \
      RAMET_LINE("aten::dict.Dict_" K "(Dict(" K ", t)(a) self) -> Dict(" K ", t)",                \
                 dict(a[0]).copy()),                                                               \
      RAMET_LINE("aten::get." K "(Dict(" K ", t) self, " K " key) -> t(*)?", get(a[0], a[1], {})), \
      RAMET_LINE("aten::get.default_" K "(Dict(" K ", t) self, " K                                 \
                 " key, t default_value) -> t(*)",                                                 \
                 get(a[0], a[1], a[2])),                                                           \
      RAMET_LINE("aten::pop.Dict_" K "(Dict(" K ", t)(a!) self, " K " key) -> t(*)",               \
                 pop(a[0], a[1])),                                                                 \
      RAMET_LINE("aten::pop.Dict_default_" K "(Dict(" K ", t)(a!) self, " K                        \
                 " key, t default_value) -> t(*)",                                                 \
                 pop(a[0], a[1], a[2])),                                                           \
      RAMET_LINE("aten::popitem." K "(Dict(" K ", t)(a!) self) -> ((" K ", t))", pop_item(a[0])),  \
      RAMET_LINE("aten::setdefault." K "(Dict(" K ", t)(a!) self, " K                              \
                 "(b -> *) key, t(c -> *) default_value) -> t(*)",                                 \
                 set_default(a[0], a[1], a[2])),                                                   \
      RAMET_LINE_DO("aten::update." K "(Dict(" K ", t)(a!) self, Dict(" K                          \
                    ", t)(a!) to_add) -> ()",                                                      \
                    update(a[0], a[1])),                                                           \
      RAMET_LINE("aten::keys." K "(Dict(" K ", t) self) -> " K "[](*)", keys(a[0], K)),            \
      RAMET_LINE("aten::values." K "(Dict(" K ", t) self) -> t[](*)", values(a[0])),               \
      RAMET_LINE("aten::items." K "(Dict(" K ", t) self) -> ((" K ", t)[])", items(a[0])),

const Line kDicts[] = {
    RAMET_DICT("str") RAMET_DICT("int") RAMET_DICT("bool") RAMET_DICT("float")
        RAMET_LINE("aten::dict() -> Dict(str, Tensor)", Dict()),
};

}  // namespace

Lines lines_of_dicts() { return kDicts; }

}  // namespace ramet::script
