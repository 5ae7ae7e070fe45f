// Nodes that call operators of ATen, or functions of Python on numbers.
#include <algorithm>
#include <iterator>

#include "nn/script/exported/node_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

struct NamedValue {
  std::string name;
  Printed value;
};

// Operators that TorchScript has under another name.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"aten::sym_size", "aten::size"},
    {"aten::sym_stride", "aten::stride"},
    {"aten::sym_numel", "aten::numel"},
    {"aten::sym_storage_offset", "aten::storage_offset"}};

// "torch.ops.aten.add.Tensor": the operator "aten::add".
std::string operator_name(const std::string& target) {
  const std::string rest = target.substr(10);  // without "torch.ops."
  const size_t dot = rest.find('.');
  if (dot == std::string::npos) return rest;
  const size_t overload = rest.find('.', dot + 1);
  std::string name = rest.substr(0, dot) + "::" + rest.substr(dot + 1, overload - dot - 1);
  for (const auto& [exported, ours] : kOtherNames)
    if (name == exported) return ours;
  return name;
}

std::string called(const std::string& name) {
  if (name.compare(0, 6, "aten::") == 0) return "torch." + name.substr(6);
  return "ops." + name.substr(0, name.find(':')) + "." + name.substr(name.rfind(':') + 1);
}

Given given_of(const NamedValue& value, bool by_name) {
  Given made;
  if (by_name) made.name = value.name;
  made.type = value.value.type;
  if (value.value.constant) made.constant = &*value.value.constant;
  return made;
}

bool has_parameter(const Operator& op, const std::string& name) {
  return std::any_of(op.parameters.begin(), op.parameters.end(),
                     [&](const Parameter& p) { return p.name == name; });
}

// "torch.ops.aten.add.Tensor": the overload "Tensor"; "default" is the one without a name.
std::string overload_name(const std::string& target) {
  const size_t dot = target.find('.', target.find('.', 10) + 1);
  return dot == std::string::npos ? "" : target.substr(dot + 1);
}

// The overload that has the arguments' names and takes them. The one that the file names comes
// first. Those of rows have no name of PyTorch's; and files give add.Tensor a number, too.
const Operator* choose(const std::string& name, const std::string& overload,
                       const std::vector<NamedValue>& values, std::string& why) {
  std::vector<const Operator*> named, asked;
  for (const Operator* op : operators_named(name)) {
    const bool fits = std::all_of(values.begin(), values.end(), [&](const NamedValue& value) {
      return has_parameter(*op, value.name);
    });
    if (fits) (op->overload == overload && !overload.empty() ? asked : named).push_back(op);
    else why.append("  ").append(op->text()).append(": has no argument of that name\n");
  }
  std::vector<Given> given;
  for (const NamedValue& value : values) given.push_back(given_of(value, true));
  std::string reasons;
  if (const Match match = match_operator(asked, given, reasons); match.op) return match.op;
  const Match match = match_operator(named, given, reasons);
  why += reasons;
  return match.op;
}

// As many arguments by position as the overload takes so; the others by name. `all_by_name` where
// that would mean another overload.
std::string arguments_of(const Operator& op, const std::vector<NamedValue>& values,
                         std::vector<Given>& given, bool all_by_name) {
  std::string text;
  std::vector<const NamedValue*> left;
  for (const NamedValue& value : values) left.push_back(&value);
  const auto print = [&](const NamedValue& value, bool by_name) {
    if (!text.empty()) text += ", ";
    if (by_name) text.append(value.name).append("=");
    text += value.value.text;
    given.push_back(given_of(value, by_name));
  };
  for (const Parameter& parameter : op.parameters) {
    const auto at = std::find_if(left.begin(), left.end(), [&](const NamedValue* value) {
      return value->name == parameter.name;
    });
    if (all_by_name || parameter.by_name || at == left.end()) break;
    print(**at, false);
    left.erase(at);
  }
  for (const NamedValue* value : left) print(*value, true);
  return text;
}

// Gives the parameters that the file leaves out: arange.start_step differs from arange.start by its
// step.
void add_defaults(const Operator& op, std::vector<NamedValue>& values) {
  for (const Parameter& parameter : op.parameters) {
    const bool given = std::any_of(values.begin(), values.end(), [&](const NamedValue& value) {
      return value.name == parameter.name;
    });
    if (given || !parameter.value) continue;
    const IValue& value = *parameter.value;
    const auto add = [&](const std::string& text, Kind kind) {
      values.push_back({parameter.name, {text, Type::of(kind), value}});
    };
    if (value.isNone()) add("None", Kind::kNone);
    else if (value.isBool()) add(value.toBool() ? "True" : "False", Kind::kBool);
    else if (value.isInt()) add(std::to_string(value.toInt()), Kind::kInt);
    else if (value.isDouble()) add(real_text(value.toDouble()), Kind::kFloat);
  }
}

// `1 - x` has a number where a tensor is expected (decompositions write so): x comes first. Empty
// for other calls.
std::string swapped_call(const std::string& name, const std::vector<NamedValue>& values) {
  if (values.size() != 2 || values[0].name != "self" || values[1].name != "other") return "";
  const Kind first = values[0].value.type->kind(), second = values[1].value.type->kind();
  if ((first != Kind::kInt && first != Kind::kFloat) || second != Kind::kTensor) return "";
  const char* const function = name == "aten::sub"   ? "torch.rsub("
                               : name == "aten::add" ? "torch.add("
                               : name == "aten::mul" ? "torch.mul("
                                                     : nullptr;
  if (!function) return "";
  return function + values[1].value.text + ", " + values[0].value.text + ")";
}

// A function on numbers: what the text has for it. $0 and $1 are the arguments.
struct NumberFunction {
  const char* target;
  const char* text;
  size_t count;
};
constexpr NumberFunction kFunctions[] = {
    {"_operator.add", "torch.add($0, $1)", 2},
    {"_operator.sub", "torch.sub($0, $1)", 2},
    {"_operator.mul", "torch.mul($0, $1)", 2},
    {"_operator.floordiv", "torch.floordiv($0, $1)", 2},
    {"_operator.truediv", "torch.div($0, $1)", 2},
    {"_operator.mod", "torch.remainder($0, $1)", 2},
    {"_operator.pow", "torch.pow($0, $1)", 2},
    {"_operator.eq", "torch.eq($0, $1)", 2},
    {"_operator.ne", "torch.ne($0, $1)", 2},
    {"_operator.lt", "torch.lt($0, $1)", 2},
    {"_operator.le", "torch.le($0, $1)", 2},
    {"_operator.gt", "torch.gt($0, $1)", 2},
    {"_operator.ge", "torch.ge($0, $1)", 2},
    {"_operator.and_", "torch.__and__($0, $1)", 2},
    {"_operator.or_", "torch.__or__($0, $1)", 2},
    {"_operator.xor", "torch.__xor__($0, $1)", 2},
    {"_operator.lshift", "torch.__lshift__($0, $1)", 2},
    {"_operator.rshift", "torch.__rshift__($0, $1)", 2},
    {"_operator.neg", "torch.neg($0)", 1},
    {"_operator.pos", "$0", 1},
    {"_operator.not_", "torch.__not__($0)", 1},
    {"math.ceil", "torch.ceil($0)", 1},
    {"math.floor", "torch.floor($0)", 1},
    {"math.trunc", "int($0)", 1},
    {"builtins.round", "torch.round($0)", 1},
    {"torch.sym_int", "int($0)", 1},
    {"torch.sym_float", "float($0)", 1},
    {"torch.sym_not", "torch.__not__($0)", 1},
    {"torch.sym_max", "ops.prim.max($0, $1)", 2},
    {"torch.sym_min", "ops.prim.min($0, $1)", 2},
    {"torch.sym_ite", "($1 if $0 else $2)", 3},
    {"torch._sym_sqrt", "torch.sqrt($0)", 1},
    {"torch._sym_exp", "torch.exp($0)", 1},
    // The exponent of two is exact, as Python's.
    {"torch._sym_log2",
     "torch.add(torch.div(torch.log((torch.frexp(float($0)))[0]"
     "), torch.log(2)), (torch.frexp(float($0)))[1])",
     1},
    {"torch._sym_cos", "torch.cos($0)", 1},
    {"torch._sym_cosh", "torch.cosh($0)", 1},
    {"torch._sym_sin", "torch.sin($0)", 1},
    {"torch._sym_sinh", "torch.sinh($0)", 1},
    {"torch._sym_tan", "torch.tan($0)", 1},
    {"torch._sym_tanh", "torch.tanh($0)", 1},
    {"torch._sym_asin", "torch.asin($0)", 1},
    {"torch._sym_acos", "torch.acos($0)", 1},
    {"torch._sym_atan", "torch.atan($0)", 1}};

std::string filled(const std::string& form, const std::vector<std::string>& arguments) {
  std::string text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '$') text += arguments[static_cast<size_t>(form[++i] - '0')];
    else text += form[i];
  }
  return text;
}

// "int(x)" for a result that the file says is an int.
std::string cast(const TypePtr& type, const std::string& text) {
  switch (type->kind()) {
    case Kind::kInt: return "int(" + text + ")";
    case Kind::kFloat: return "float(" + text + ")";
    case Kind::kBool: return "bool(" + text + ")";
    default: return text;
  }
}

}  // namespace

std::optional<std::string> number_call(const std::string& function,
                                       const std::vector<std::string>& arguments) {
  const auto known = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const NumberFunction& f) { return function == f.target; });
  if (known == std::end(kFunctions) || arguments.size() != known->count) return std::nullopt;
  return filled(known->text, arguments);
}

void ExportedPrinter::operator_call(Node& node) {
  std::string name = operator_name(node.target);
  std::vector<NamedValue> values;
  bool wrong = false;
  for (const Field& input : node.field["inputs"].items()) {
    values.push_back({input["name"].text(), argument(input["arg"], node.scope)});
    wrong = wrong || !values.back().value.type;
  }
  // Strides that PyTorch's kernels leave may be others here: reshape() copies only then.
  if ((name == "aten::view" || name == "aten::_unsafe_view") && values.size() == 2 &&
      values[1].name == "size") {
    name = "aten::reshape";
    values[1].name = "shape";
  }
  if (operators_named(name).empty()) return give_up(node, name + ": no such operation");
  if (wrong) return give_up(node, "");
  if (name == "aten::_assert_scalar") {
    node.line("if " + values.at(0).value.text + ":");
    node.deeper("pass");
    node.line("else:");
    return node.deeper("ops.prim.RaiseException(" + values.at(1).value.text + ")");
  }
  if ((name == "aten::item" || name == "aten::_local_scalar_dense") && node.outputs.size() == 1)
    return assign(node, cast(node.outputs[0].type, values.at(0).value.text));
  std::string why;
  const Operator* const op = choose(name, overload_name(node.target), values, why);
  if (const std::string swapped = op ? "" : swapped_call(name, values); !swapped.empty())
    return assign(node, swapped);
  if (!op) return give_up(node, name + ": no overload takes the arguments\n" + why);
  for (int form = 0; form < 3; ++form) {
    std::vector<Given> given;
    if (form == 2) add_defaults(*op, values);
    const std::string text = arguments_of(*op, values, given, form > 0);
    if (match_operator(operators_named(name), given, why).op == op)
      return assign(node, called(name) + "(" + text + ")");
  }
  give_up(node, name +
                    ": got arguments that TorchScript's text gives to another overload than\n  " +
                    op->text());
}

void ExportedPrinter::function_call(Node& node) {
  if (node.target.find("._functorch.") != std::string::npos)
    return give_up(node, node.target +
                             ": a step of torch.vmap while it is traced (associative_scan with "
                             "combine_mode=\"generic\" has such), which no file can run: "
                             "write the loop with scan()");
  std::vector<std::string> arguments;
  for (const Field& input : node.field["inputs"].items()) {
    const Printed made = argument(input["arg"], node.scope);
    if (!made.type) return give_up(node, "");
    arguments.push_back(made.text);
  }
  if (node.outputs.size() != 1 || node.outputs[0].list || !node.outputs[0].type)
    return give_up(node, node.target + ": got " + std::to_string(node.outputs.size()) +
                             " results, expected one number");
  if (const auto text = number_call(node.target, arguments))
    return assign(node, cast(node.outputs[0].type, *text));
  if (node.target == "torch.sym_sum" && !arguments.empty()) {
    std::string sum = "0";
    const auto add = [&](const std::string& text) { sum = "torch.add(" + sum + ", " + text + ")"; };
    for (const Field& input : node.field["inputs"].items()) {
      const auto [kind, value] = input["arg"].only();
      if (kind == "as_sym_ints" || kind == "as_ints") {
        for (const Field& one : value.items()) add(list_item(one, kind, node.scope).text);
      } else {
        add(argument(input["arg"], node.scope).text);
      }
    }
    return assign(node, sum);
  }
  give_up(node,
          node.target + ": no such function of " + std::to_string(arguments.size()) + " numbers");
}

}  // namespace ramet::script
