// Nodes of a graph as statements.
#include <algorithm>

#include "nn/script/exported/node_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

constexpr const char* kPlainOps = "torch.ops.";
constexpr const char* kHigherOrder = "torch.ops.higher_order.";

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

// The last line of Python that is not PyTorch's own; its own where there is no other.
Source::Origin origin_of(const std::string& trace) {
  Source::Origin found{0, "", 0};
  bool found_own = false;
  for (size_t at = trace.find("File \""); at != std::string::npos;
       at = trace.find("File \"", at + 1)) {
    const size_t from = at + 6, end = trace.find('"', from);
    if (end == std::string::npos) break;
    const std::string file = trace.substr(from, end - from);
    constexpr const char* kLine = "\", line ";
    if (trace.compare(end, 8, kLine) != 0 || file.find('\n') != std::string::npos) continue;
    int64_t line = 0;
    for (size_t i = end + 8; i < trace.size() && i < end + 16 && trace[i] >= '0' && trace[i] <= '9';
         ++i)
      line = 10 * line + (trace[i] - '0');
    const bool own = file.find("/torch/") == std::string::npos && !begins(file, "torch/");
    if (found_own && !own) continue;
    found_own = own;
    found.file = file;
    found.line = line;
  }
  return found;
}

std::optional<Kind> kind_of_result(const std::string& kind) {
  if (kind == "as_tensor" || kind == "as_optional_tensor") return Kind::kTensor;
  if (kind == "as_sym_int" || kind == "as_int") return Kind::kInt;
  if (kind == "as_sym_float" || kind == "as_float") return Kind::kFloat;
  if (kind == "as_sym_bool" || kind == "as_bool") return Kind::kBool;
  return std::nullopt;
}

std::string name_of_result(const Field& value, const std::string& kind) {
  if (kind == "as_tensor") return value["name"].text();
  if (kind == "as_optional_tensor") {
    const auto [which, tensor] = value.only();
    return which == "as_tensor" ? tensor["name"].text() : "";
  }
  const auto [which, name] = value.only();
  if (which != "as_name") name.bad("got \"", which, "\" as a result, expected a name");
  return name.text();
}

}  // namespace

ExportedPrinter::Node::Node(const Field& f, ExportedScope& s, int i, PrintedLines& t)
    : field(f), scope(s), indent(i), into(t), target(f["target"].text()) {
  if (const auto metadata = f.find("metadata"))
    if (const auto trace = metadata->find("stack_trace")) origin = origin_of(trace->text());
  for (const Field& output : f["outputs"].items()) {
    const auto [kind, value] = output.only();
    Output made;
    if (kind == "as_tensors") {
      made.list = true;
      made.type = Type::list(Type::of(Kind::kTensor));
      for (const Field& tensor : value.items()) made.items.push_back(tensor["name"].text());
    } else if (kind != "as_none") {
      const auto type = kind_of_result(kind);
      if (!type) output.bad("got a result \"", kind, "\", which this library does not have");
      made.type = Type::of(*type);
      made.name = name_of_result(value, kind);
    }
    outputs.push_back(std::move(made));
  }
  std::string name;
  if (const auto given = f.find("name")) name = given->text();
  else if (!outputs.empty())
    name = outputs[0].list && !outputs[0].items.empty() ? outputs[0].items[0] : outputs[0].name;
  shown = "node \"" + name + "\" (" + target + ")";
}

std::string ExportedPrinter::Node::place() const {
  return origin.file.empty() ? shown
                             : origin.file + ":" + std::to_string(origin.line) + " (" + shown + ")";
}

void ExportedPrinter::nodes(const Field& graph, ExportedScope& scope, int indent,
                            PrintedLines& into) {
  for (const Field& field : graph["nodes"].items()) {
    Node made(field, scope, indent, into);
    if (begins(made.target, kHigherOrder)) higher_order(made);
    else if (begins(made.target, kPlainOps)) operator_call(made);
    else function_call(made);
  }
}

void ExportedPrinter::give_up(Node& node, const std::string& what) {
  problem(what, node.place());
  const auto wrong = [&](const std::string& name) {
    if (!name.empty()) declare(node.field, node.scope, name, nullptr);
  };
  for (const Output& output : node.outputs) {
    wrong(output.name);
    for (const std::string& name : output.items) wrong(name);
  }
}

// "a = call", "a, b, = call", or "call" alone.
void ExportedPrinter::assign(Node& node, const std::string& call) {
  const auto variable = [&](const std::string& name, const TypePtr& type) {
    return name.empty() ? node.scope.names.unique("_unused")
                        : declare(node.field, node.scope, name, type).text;
  };
  const auto unpack = [&](const std::vector<std::string>& names, const std::string& from) {
    std::string targets;
    for (const std::string& name : names)
      targets.append(variable(name, Type::of(Kind::kTensor))).append(", ");
    if (!names.empty()) node.line(targets + "= " + from);
  };
  const std::vector<Output>& outputs = node.outputs;
  if (outputs.empty()) return node.line(call);
  if (outputs.size() == 1 && outputs[0].list) {
    if (outputs[0].items.empty())
      return node.line(node.scope.names.unique("_unused") + " = " + call);
    return unpack(outputs[0].items, call);
  }
  std::string targets;
  std::vector<std::pair<const Output*, std::string>> lists;
  for (const Output& output : outputs) {
    if (!targets.empty()) targets += ", ";
    if (output.list) {
      lists.emplace_back(&output, node.scope.names.unique("_list"));
      targets += lists.back().second;
    } else {
      targets += variable(output.name, output.type);
    }
  }
  node.line(targets + (outputs.size() > 1 ? ", = " : " = ") + call);
  for (const auto& [output, list] : lists) unpack(output->items, list);
}

}  // namespace ramet::script
