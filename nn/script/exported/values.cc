// Arguments of a graph's nodes as text.
#include <algorithm>
#include <iterator>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

const TypePtr& type(Kind kind) { return Type::of(kind); }

Printed constant(std::string text, Kind kind, IValue value) {
  return {std::move(text), type(kind), std::move(value)};
}

// torch.export has its own numbers of dtypes: one more than ATen's for those that both have.
int64_t dtype_number(const Field& at) {
  const int64_t number = at.integer();
  if (number < 1 || number > 13 || number == 9 || number == 10 || number == 11) {
    at.bad("got the dtype ", number,
           ", expected 1 to 8 (uint8, int8, int16, int32, int64, float16, float32, float64), 12 "
           "(bool) or 13 (bfloat16)");
  }
  return number == 13 ? 15 : number - 1;
}

int64_t format_number(const Field& at) {
  constexpr int64_t kNumbers[] = {0, 2, 3, 1};  // contiguous, channels last, in 3-d, preserve
  const int64_t number = at.integer();
  if (number < 1 || number > 4) at.bad("got the memory format ", number, ", expected 1 to 4");
  return kNumbers[number - 1];
}

std::string device_name(const Field& at) {
  std::string name = at["type"].text();
  if (const auto index = at.find("index")) name += ":" + std::to_string(index->integer());
  return name;
}

// What items of a list are, by the list's own kind.
struct Items {
  const char* list;
  const char* item;
  Kind kind;
};
constexpr Items kItems[] = {{"as_ints", "as_int", Kind::kInt},
                            {"as_floats", "as_float", Kind::kFloat},
                            {"as_bools", "as_bool", Kind::kBool},
                            {"as_strings", "as_string", Kind::kString},
                            {"as_sym_ints", "as_sym_int", Kind::kInt},
                            {"as_sym_floats", "as_sym_float", Kind::kFloat},
                            {"as_sym_bools", "as_sym_bool", Kind::kBool},
                            {"as_tensors", "as_tensor", Kind::kTensor},
                            {"as_optional_tensors", "as_optional_tensor", Kind::kTensor}};

const Items& items_of(const Field& at, const std::string& kind) {
  for (const Items& one : kItems)
    if (kind == one.list) return one;
  if (kind == "as_custom_obj")
    at.bad("got an object of the C++ class \"", at["class_fqn"].text(),
           "\", which a library registers: such objects are not supported");
  at.bad("got an argument \"", kind, "\", which this library does not have");
}

Printed number(const Field& at) {
  const int64_t value = at.integer();
  return constant(std::to_string(value), Kind::kInt, value);
}
Printed real(const Field& at) {
  const double value = at.real();
  return constant(real_text(value), Kind::kFloat, value);
}
Printed truth(const Field& at) {
  const bool value = at.truth();
  return constant(value ? "True" : "False", Kind::kBool, value);
}
Printed none() { return constant("None", Kind::kNone, {}); }
Printed text(const Field& at) {
  const std::string value = at.text();
  return constant(quoted(value), Kind::kString, value);
}

Printed variable(const Field& at, ExportedScope& scope) {
  const std::string name = at.text();
  const auto found = scope.values.find(name);
  if (found == scope.values.end())
    at.bad("got \"", name, "\", expected the name of an input or of an earlier node's output");
  scope.used.insert(name);
  return found->second;
}

// An item of its kind, without {"as_int": ...} around it.
Printed item(const Field& at, const std::string& kind, ExportedScope& scope) {
  if (kind == "as_none") return none();
  if (kind == "as_tensor") return variable(at["name"], scope);
  if (kind == "as_int") return number(at);
  if (kind == "as_float") return real(at);
  if (kind == "as_bool") return truth(at);
  if (kind == "as_string") return text(at);
  const auto [which, value] = at.only();  // "as_sym_int": {"as_name": "s0"} or {"as_int": 3}
  if (which == "as_name") return variable(value, scope);
  if (which == "as_none" || which == "as_int" || which == "as_float" || which == "as_bool" ||
      which == "as_tensor")
    return item(value, which, scope);
  at.bad("got \"", which, "\" as ", kind);
}

}  // namespace

bool ExportedPrinter::is_list(const std::string& kind) {
  return std::any_of(std::begin(kItems), std::end(kItems),
                     [&](const Items& one) { return kind == one.list; });
}

Printed ExportedPrinter::list_item(const Field& at, const std::string& kind, ExportedScope& scope) {
  return item(at, items_of(at, kind).item, scope);
}

Printed ExportedPrinter::list(const Field& at, const std::string& kind, ExportedScope& scope) {
  const Items* const items = &items_of(at, kind);
  Printed made;
  bool wrong = false, optional = false;
  std::vector<IValue> constants;
  size_t count = 0;
  for (const Field& field : at.items()) {
    const Printed one = item(field, items->item, scope);
    made.text += (count++ ? ", " : "[") + one.text;
    wrong = wrong || !one.type;
    optional = optional || (one.type && one.type->kind() == Kind::kNone);
    if (one.constant) constants.push_back(*one.constant);
  }
  made.text += count ? "]" : "[]";
  TypePtr element = type(items->kind);
  if (optional) element = Type::optional(element);
  if (count == 0 || optional || items->kind == Kind::kString) {
    made.text = "annotate(List[" + element->text() + "], " + made.text + ")";
  } else if (constants.size() == count) {
    made.constant = make_list(element, constants);
  }
  if (count == 0 && items->kind != Kind::kTensor) {  // `[]` takes the parameter's type
    made.text = "[]";
    made.constant = IValue(List<Tensor>());
    element = type(Kind::kTensor);
  }
  if (!wrong) made.type = Type::list(element);
  return made;
}

Printed ExportedPrinter::argument(const Field& argument, ExportedScope& scope) {
  const auto [kind, value] = argument.only();
  if (kind == "as_scalar_type") {
    const int64_t n = dtype_number(value);
    return constant(std::to_string(n), Kind::kInt, n);
  }
  if (kind == "as_memory_format") {
    const int64_t n = format_number(value);
    return constant(std::to_string(n), Kind::kInt, n);
  }
  if (kind == "as_layout") {
    if (value.integer() != 7)
      value.bad("got the layout ", value.integer(), ", expected 7, strided");
    return constant("0", Kind::kInt, int64_t{0});
  }
  if (kind == "as_device")
    return {"torch.device(" + quoted(device_name(value)) + ")", type(Kind::kDevice), std::nullopt};
  if (kind == "as_none" || kind == "as_tensor" || kind == "as_int" || kind == "as_float" ||
      kind == "as_bool" || kind == "as_string" || kind == "as_optional_tensor" ||
      kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return item(value, kind, scope);
  return list(value, kind, scope);
}

Printed ExportedPrinter::argument_of_tensor(const Field& argument, ExportedScope& scope) {
  return variable(argument["name"], scope);
}

const Printed& ExportedPrinter::declare(const Field& at, ExportedScope& scope,
                                        const std::string& name, const TypePtr& type) {
  const auto [made, is_new] = scope.values.emplace(name, Printed{"", type, std::nullopt});
  if (!is_new) at.bad("got the name \"", name, "\" twice, expected once");
  made->second.text = scope.names.unique(name);
  return made->second;
}

}  // namespace ramet::script
