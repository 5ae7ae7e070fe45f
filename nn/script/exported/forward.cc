// forward() of an exported program: parameters, checks, the graph, what it writes, results.
#include <algorithm>

#include "nn/script/exported/forward_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

// A tensor or number that a caller gives.
struct Leaf {
  std::string name;  // in the graph; empty for a constant that the graph does not name
  TypePtr type;
  std::optional<Printed> constant;  // that it has to be
};

Printed constant_of(const Field& value) {
  const auto [kind, held] = value.only();
  if (kind == "as_none") return {"None", Type::of(Kind::kNone), IValue()};
  if (kind == "as_int")
    return {std::to_string(held.integer()), Type::of(Kind::kInt), IValue(held.integer())};
  if (kind == "as_float") return {real_text(held.real()), Type::of(Kind::kFloat), held.real()};
  if (kind == "as_bool")
    return {held.truth() ? "True" : "False", Type::of(Kind::kBool), held.truth()};
  if (kind == "as_string") return {quoted(held.text()), Type::of(Kind::kString), held.text()};
  held.bad("got a constant \"", kind, "\" as an input, expected None, a number or a text");
}

Leaf leaf_of(const std::string& kind, const Field& spec) {
  Leaf leaf;
  if (kind == "constant_input") {
    leaf.name = spec["name"].text();
    leaf.constant = constant_of(spec["value"]);
    leaf.type = leaf.constant->type;
    if (leaf.type->kind() == Kind::kNone) leaf.type = Type::optional(Type::of(Kind::kTensor));
    return leaf;
  }
  const auto [form, value] = spec["arg"].only();
  if (form == "as_tensor") {
    leaf.name = value["name"].text();
    leaf.type = Type::of(Kind::kTensor);
    return leaf;
  }
  const Kind type = form == "as_sym_int"     ? Kind::kInt
                    : form == "as_sym_float" ? Kind::kFloat
                    : form == "as_sym_bool"  ? Kind::kBool
                                             : Kind::kAny;
  if (type == Kind::kAny) {  // a constant
    leaf.constant = constant_of(spec["arg"]);
    leaf.type = leaf.constant->type;
    if (leaf.type->kind() == Kind::kNone) leaf.type = Type::optional(Type::of(Kind::kTensor));
    return leaf;
  }
  leaf.name = value["as_name"].text();
  leaf.type = Type::of(type);
  return leaf;
}

// Writes "x = (inputs)[0]" for the leaves of a value.
class Unpacker {
 public:
  Unpacker(PrintedLines& into, Namer& names, const std::vector<TypePtr>& types)
      : into_(into), names_(names), types_(types) {}
  /// The expressions of all leaves, in order, and their names for errors ("inputs[0]").
  std::vector<std::string> leaves, paths;
  /// Names of NamedTuples' classes, by such names.
  std::map<std::string, std::string> classes;
  void start(size_t leaf) { next_ = leaf; }

  void unpack(const Structure& s, const std::string& value, const std::string& shown) {
    if (s.kind == Structure::Kind::kLeaf) {
      leaves.push_back(value);
      paths.push_back(shown);
      ++next_;
      return;
    }
    if (!s.class_name.empty()) classes.emplace(shown, s.class_name);
    const bool dict = s.kind == Structure::Kind::kDict, list = s.kind == Structure::Kind::kList;
    if (dict || list) {
      into_.add(2,
                "if torch.eq(torch.len(" + value + "), " + std::to_string(s.items.size()) + "):");
      into_.add(3, "pass");
      into_.add(2, "else:");
      into_.add(3, "ops.prim.RaiseException(torch.format(" +
                       quoted("input '" + format_part(shown) + "': got {} items, expected " +
                              std::to_string(s.items.size())) +
                       ", torch.len(" + value + ")))");
    }
    size_t first = next_;
    const bool any =
        (dict || list) && s.type(types_, first)->elements().back()->kind() == Kind::kAny;
    for (size_t i = 0; i < s.items.size(); ++i) {
      const std::string key = dict ? s.key_text(i) : std::to_string(i);
      std::string item = value + "[" + key + "]";
      size_t at = next_;
      if (any) item = "unchecked_cast(" + s.items[i].type(types_, at)->text() + ", " + item + ")";
      const std::string variable = names_.unique("_item");
      into_.add(2, variable + " = " + item);
      unpack(s.items[i], variable, shown + "[" + key + "]");
    }
  }

 private:
  PrintedLines& into_;
  Namer& names_;
  const std::vector<TypePtr>& types_;
  size_t next_ = 0;
};

// The text of a result. `leaves` are those of its tensors and numbers, in order.
std::string packed(const Structure& s, const std::vector<Printed>& leaves, size_t& next,
                   const std::vector<TypePtr>& types) {
  if (s.kind == Structure::Kind::kLeaf) return leaves.at(next++).text;
  size_t first = next;
  const TypePtr type = s.type(types, first);
  std::string text;
  for (size_t i = 0; i < s.items.size(); ++i) {
    if (s.kind == Structure::Kind::kDict) text += s.key_text(i) + ": ";
    text += packed(s.items[i], leaves, next, types);
    if (i + 1 < s.items.size() || s.kind == Structure::Kind::kTuple) text += ", ";
  }
  if (s.kind == Structure::Kind::kTuple) return "(" + text + ")";
  const bool list = s.kind == Structure::Kind::kList;
  return "annotate(" + type->text() + ", " + (list ? "[" : "{") + text + (list ? "]" : "}") + ")";
}

// The steps of printing. Each reads what those before it have found.
class ForwardPrinter {
 public:
  ForwardPrinter(const Field& program, ExportedPrinter& printer, int64_t limit)
      : program_(program),
        printer_(printer),
        limit_(limit),
        graph_(program["graph_module"]["graph"]),
        signature_(program["graph_module"]["signature"]),
        call_(program["graph_module"]["module_call_graph"].items().at(0)["signature"]) {}

  void read_inputs(const std::map<std::string, std::string>& state_targets);
  void name_arguments();
  void print_inputs();
  void name_fields(const std::map<std::string, std::string>& classes);
  void print_guards(InputChecks& checks);
  void print_graph();
  void print_writes();
  void print_results();
  void print(PrintedLines& into);

 private:
  // A parameter of forward().
  struct Argument {
    std::string name, shown, type;
    const Structure* structure;
    size_t leaf;  // its first
  };
  void print_leaf(const Leaf& leaf, const std::string& value, const std::string& shown,
                  InputChecks& checks);
  void write(const std::string& name, const Printed& value);
  std::string heading() const;

  const Field program_;
  ExportedPrinter& printer_;
  const int64_t limit_;
  const Field graph_, signature_, call_;
  ExportedScope scope_;
  std::vector<Leaf> leaves_;
  std::vector<TypePtr> types_;                              // of the leaves
  std::vector<std::pair<std::string, std::string>> state_;  // names in the graph, and targets
  Structure inputs_;
  GuardedInputs guarded_;
  std::vector<Argument> arguments_;
  std::vector<Printed> results_;
  TypePtr result_type_;
  PrintedLines body_, statements_;
};

void ForwardPrinter::read_inputs(const std::map<std::string, std::string>& state_targets) {
  for (const Field& spec : signature_["input_specs"].items()) {
    const auto [kind, value] = spec.only();
    const char* member = kind == "parameter"         ? "parameter_name"
                         : kind == "buffer"          ? "buffer_name"
                         : kind == "tensor_constant" ? "tensor_constant_name"
                                                     : nullptr;
    if (member) {
      const std::string name = value["arg"]["name"].text(), target = value[member].text();
      if (state_targets.count(target) == 0)
        value.bad("got \"", target, "\", which the file's tensors lack");
      state_.emplace_back(name, target);
    } else if (kind == "user_input" || kind == "constant_input") {
      leaves_.push_back(leaf_of(kind, value));
      types_.push_back(leaves_.back().type);
    } else if (kind == "custom_obj") {
      const auto type = value["arg"].find("class_fqn");
      value.bad("got an object of the C++ class \"", type ? type->text() : "",
                "\", which a library registers: such objects are not supported, expected tensors "
                "and numbers alone");
    } else {
      value.bad("got an input \"", kind, "\", which this library does not have");
    }
  }
}

// As many parameters as the tuple and the dictionary of arguments have.
void ForwardPrinter::name_arguments() {
  inputs_ = Structure::read(call_, call_["in_spec"].text(), limit_);
  if (inputs_.items.size() != 2 || inputs_.items[1].kind != Structure::Kind::kDict ||
      inputs_.leaves() != leaves_.size())
    call_.bad("got a structure of ", inputs_.leaves(),
              " inputs, expected a tuple and a dictionary of ", leaves_.size());
  std::vector<std::string> given_names;
  if (const auto names = call_.find("forward_arg_names"))
    for (const Field& name : names->items()) given_names.push_back(name.text());
  size_t next = 0;
  for (const Structure& group : inputs_.items) {
    const bool by_name = &group == &inputs_.items[1];
    for (size_t i = 0; i < group.items.size(); ++i) {
      const size_t number = arguments_.size();
      std::string name =
          by_name                       ? group.keys[i]
          : number < given_names.size() ? given_names[number]
          : !leaves_.at(next).name.empty() && group.items[i].kind == Structure::Kind::kLeaf
              ? leaves_[next].name
              : "input_" + std::to_string(number);
      const size_t leaf = next;
      const TypePtr type = group.items[i].type(types_, next);
      arguments_.push_back({scope_.names.unique(name), name, type->text(), &group.items[i], leaf});
    }
  }
}

void ForwardPrinter::print_inputs() {
  InputChecks checks(body_, scope_.names, program_.find("range_constraints"));
  for (const Argument& argument : arguments_) {
    Unpacker unpacker(body_, scope_.names, types_);
    unpacker.start(argument.leaf);
    unpacker.unpack(*argument.structure, argument.name, argument.shown);
    for (size_t i = 0; i < unpacker.leaves.size(); ++i) {
      const Leaf& leaf = leaves_[argument.leaf + i];
      print_leaf(leaf, unpacker.leaves[i], format_part(unpacker.paths[i]), checks);
      guarded_.all.push_back({unpacker.paths[i], unpacker.leaves[i], leaf.type});
    }
    name_fields(unpacker.classes);
  }
  checks.finish(graph_);
  print_guards(checks);
}

void ForwardPrinter::name_fields(const std::map<std::string, std::string>& classes) {
  const auto known = program_["graph_module"].find("treespec_namedtuple_fields");
  if (!known) return;
  for (const auto& [path, name] : classes) {
    const auto fields = known->find(name);
    if (!fields) continue;
    size_t number = 0;
    for (const Field& field : (*fields)["field_names"].items()) {
      std::string item = path + "[" + std::to_string(number++) + "]";
      guarded_.fields.emplace(path + "." + field.text(), std::move(item));
    }
  }
}

// What the tracer has assumed of the inputs: another branch of Python's code may be meant without.
void ForwardPrinter::print_guards(InputChecks& checks) {
  const auto guards = program_.find("guards_code");
  if (!guards) return;
  std::set<std::string> known;
  for (const Field& guard : guards->items()) {
    if (!known.insert(guard.text()).second) continue;
    std::map<std::string, std::string> uses;
    const std::optional<std::string> test = print_guard(guard, guarded_, uses);
    if (!test) continue;
    std::string message = "inputs: got ", sizes;
    for (const auto& [path, variable] : uses) {
      message += (sizes.empty() ? "" : ", ") + format_part(path) + " of the size {}";
      sizes += (sizes.empty() ? "" : ", ") + ("torch.size(" + variable + ")");
    }
    if (sizes.empty()) message += "others";
    message += ", expected " + format_part(guard.text()) + " (export has assumed it)";
    checks.expect(*test, message, sizes);
  }
}

void ForwardPrinter::print_leaf(const Leaf& leaf, const std::string& value,
                                const std::string& shown, InputChecks& checks) {
  if (leaf.constant) {
    const bool none = leaf.constant->type->kind() == Kind::kNone;
    checks.expect(none ? "torch.__is__(" + value + ", None)"
                       : "torch.eq(" + value + ", " + leaf.constant->text + ")",
                  "input '" + shown + "': got {}, expected " + format_part(leaf.constant->text) +
                      ", with which it was exported",
                  none ? "\"a tensor\"" : value);
    if (!leaf.name.empty()) scope_.values[leaf.name] = *leaf.constant;
    return;
  }
  if (!scope_.values.emplace(leaf.name, Printed{value, leaf.type, std::nullopt}).second)
    graph_.bad("got two inputs \"", leaf.name, "\"");
  if (leaf.type->kind() == Kind::kTensor) {
    checks.tensor(graph_["tensor_values"][leaf.name], value, shown);
  } else if (leaf.type->kind() == Kind::kInt) {
    if (const auto numbers = graph_.find("sym_int_values"))
      if (const auto number = numbers->find(leaf.name)) checks.number(*number, value, shown);
  }
}

void ForwardPrinter::print_graph() {
  for (const auto& [name, target] : state_)
    printer_.declare(graph_, scope_, name, Type::of(Kind::kTensor));
  printer_.nodes(graph_, scope_, 2, statements_);
}

void ForwardPrinter::write(const std::string& name, const Printed& value) {
  const auto to = scope_.values.find(name);
  if (to == scope_.values.end()) graph_.bad("got \"", name, "\" to write, expected an input");
  scope_.used.insert(name);
  statements_.add(2, scope_.names.unique("_written") + " = torch.copy_(" + to->second.text + ", " +
                         value.text + ")");
}

// What the graph computes for buffers and inputs is written at the end, as PyTorch does.
void ForwardPrinter::print_writes() {
  std::map<std::string, std::string> by_target;
  for (const auto& [name, target] : state_) by_target.emplace(target, name);
  for (const Field& spec : signature_["output_specs"].items()) {
    const auto [kind, value] = spec.only();
    if (kind == "user_output") {
      results_.push_back(printer_.argument(value["arg"], scope_));
    } else if (kind == "loss_output") {
      results_.push_back(printer_.argument_of_tensor(value["arg"], scope_));
    } else if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      const std::string target =
          value[kind == "buffer_mutation" ? "buffer_name" : "parameter_name"].text();
      const auto at = by_target.find(target);
      if (at == by_target.end()) value.bad("got \"", target, "\", expected a tensor of the file");
      write(at->second, printer_.argument_of_tensor(value["arg"], scope_));
    } else if (kind == "user_input_mutation") {
      write(value["user_input_name"].text(), printer_.argument_of_tensor(value["arg"], scope_));
    } else {
      value.bad("got an output \"", kind, "\", which this library does not have");
    }
  }
}

void ForwardPrinter::print_results() {
  const Structure outputs = Structure::read(call_, call_["out_spec"].text(), limit_);
  if (outputs.leaves() != results_.size())
    call_.bad("got a structure of ", outputs.leaves(), " results, expected ", results_.size());
  std::vector<TypePtr> types;
  for (const Printed& result : results_)
    types.push_back(result.type ? result.type : Type::of(Kind::kTensor));
  size_t leaf = 0, type_leaf = 0;
  result_type_ = outputs.type(types, type_leaf);
  statements_.add(2, "return " + packed(outputs, results_, leaf, types));
}

std::string ForwardPrinter::heading() const {
  std::string parameters = "self: " + std::string(ExportedModules::root_name());
  size_t required = arguments_.size();  // from there on all have defaults
  const auto is_constant = [&](const Argument& a) {
    return a.structure->kind == Structure::Kind::kLeaf && leaves_[a.leaf].constant;
  };
  while (required > 0 && is_constant(arguments_[required - 1])) --required;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    parameters += ",\n    " + argument.name + ": " + argument.type;
    if (i >= required) parameters += "=" + leaves_[argument.leaf].constant->text;
  }
  return "def forward(" + parameters + ") -> " + result_type_->text() + ":";
}

void ForwardPrinter::print(PrintedLines& into) {
  into.add(1, heading());
  into.add(body_);
  for (const auto& [name, target] : state_)
    if (scope_.used.count(name) != 0)
      into.add(2, scope_.values.at(name).text + " = " + ExportedModules::expression(target));
  into.add(statements_);
}

}  // namespace

void print_forward(const Field& program, ExportedPrinter& printer, int64_t limit,
                   const std::map<std::string, std::string>& state_targets, PrintedLines& into) {
  ForwardPrinter steps(program, printer, limit);
  steps.read_inputs(state_targets);
  steps.name_arguments();
  steps.print_inputs();
  steps.print_graph();
  steps.print_writes();
  steps.print_results();
  steps.print(into);
}

}  // namespace ramet::script
