// Nodes that run other graphs: conditions, loops, and regions of a mode.
#include "nn/script/exported/node_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

std::string joined(const std::vector<Printed>& values) {
  std::string text;
  for (const Printed& value : values) text.append(value.text).append(", ");
  return text;
}

std::vector<Field> inputs_of(const Field& node) {
  std::vector<Field> list;
  for (const Field& input : node["inputs"].items()) list.push_back(input["arg"]);
  return list;
}

}  // namespace

// The arguments from place `from` on; lists of them count one by one.
std::vector<Printed> ExportedPrinter::operands(Node& node, const std::vector<Field>& inputs,
                                               size_t from, size_t end) {
  std::vector<Printed> found;
  for (size_t i = from; i < end; ++i) {
    const auto [kind, value] = inputs[i].only();
    if (is_list(kind)) {
      for (const Field& one : value.items()) found.push_back(list_item(one, kind, node.scope));
    } else {
      found.push_back(argument(inputs[i], node.scope));
    }
  }
  return found;
}

// Prints a graph as a method, once, and says how many results it has.
std::string ExportedPrinter::subgraph(Node& node, const Field& argument,
                                      const std::vector<Printed>& operands, size_t& outputs) {
  const auto [kind, value] = argument.only();
  if (kind != "as_graph") argument.bad("got \"", kind, "\", expected a graph");
  const Field graph = value["graph"];
  if (--depth_left_ < 0) argument.bad("got too many graphs inside each other (a limit of load)");
  ExportedScope scope;
  const std::string name = method_names.unique(value["name"].text());
  PrintedLines body, header;
  std::string parameters = "self: " + std::string(ExportedModules::root_name());
  const std::vector<Field> inputs = graph["inputs"].items();
  if (inputs.size() != operands.size())
    graph.bad("got ", inputs.size(), " inputs, expected the node's ", operands.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto [form, input] = inputs[i].only();
    const TypePtr& type = operands[i].type;
    if (form == "as_tensor" || form == "as_sym_int" || form == "as_sym_float" ||
        form == "as_sym_bool") {
      const std::string input_name =
          form == "as_tensor" ? input["name"].text() : input["as_name"].text();
      const Printed& made = declare(input, scope, input_name, type);
      parameters += ", " + made.text + ": " + (type ? type->text() : "Tensor");
    } else {  // a constant
      parameters += ", " + scope.names.unique("_unused") + ": " + (type ? type->text() : "Tensor");
    }
  }
  nodes(graph, scope, 2, body);
  std::string results, types;
  outputs = 0;
  for (const Field& output : graph["outputs"].items()) {
    const Printed made = this->argument(output, scope);
    results += made.text + ", ";
    types += (outputs++ ? ", " : "") + (made.type ? made.type->text() : "Tensor");
  }
  header.add(1,
             "def " + name + "(" + parameters + ") -> " +
                 (outputs ? "Tuple[" + types + "]" : "NoneType") + ":",
             node.origin);
  body.add(2, outputs ? "return (" + results + ")" : "return None", node.origin);
  methods.add(header);
  methods.add(body);
  ++depth_left_;
  return "(self)." + name;
}

void ExportedPrinter::higher_order(Node& node) {
  const std::string name = node.target.substr(23);  // without "torch.ops.higher_order."
  const std::vector<Field> inputs = inputs_of(node.field);
  if (name == "cond" && inputs.size() >= 3) return cond(node, inputs);
  if (name == "while_loop" && inputs.size() >= 3) return while_loop(node, inputs);
  if (name == "wrap_with_set_grad_enabled" && inputs.size() >= 2) return grad_region(node, inputs);
  if (name == "wrap_with_autocast" && inputs.size() >= 5) return autocast_region(node, inputs);
  if (name == "scan" && inputs.size() == 4) return scan(node, inputs);
  if (name == "map_impl" && inputs.size() == 3) return map(node, inputs);
  if (name == "associative_scan" && inputs.size() == 3) return associative_scan(node, inputs);
  give_up(node, "higher_order::" + name + ": no such operation");
}

// All names that a node gives, in order.
std::vector<std::pair<std::string, TypePtr>> ExportedPrinter::results_of(const Node& node) {
  std::vector<std::pair<std::string, TypePtr>> names;
  for (const Output& output : node.outputs) {
    if (!output.list)
      names.emplace_back(output.name, output.type ? output.type : Type::of(Kind::kNone));
    for (const std::string& name : output.items) names.emplace_back(name, Type::of(Kind::kTensor));
  }
  return names;
}

// "a, b, = ", or nothing.
std::string ExportedPrinter::targets(Node& node) {
  std::string text;
  for (const auto& [name, type] : results_of(node))
    text += (name.empty() ? node.scope.names.unique("_unused")
                          : declare(node.field, node.scope, name, type).text) +
            ", ";
  return text.empty() ? text : text + "= ";
}

void ExportedPrinter::cond(Node& node, const std::vector<Field>& inputs) {
  const Printed condition = argument(inputs[0], node.scope);
  const std::vector<Printed> given = operands(node, inputs, 3, inputs.size());
  size_t first = 0, second = 0;
  const std::string on_true = subgraph(node, inputs[1], given, first);
  const std::string on_false = subgraph(node, inputs[2], given, second);
  const size_t expected = results_of(node).size();
  if (first != expected || second != expected)
    node.field.bad("got graphs of ", first, " and ", second, " results, expected ", expected);
  const std::string into = targets(node);
  node.line("if bool(" + condition.text + "):");
  node.deeper(into + on_true + "(" + joined(given) + ")");
  node.line("else:");
  node.deeper(into + on_false + "(" + joined(given) + ")");
}

void ExportedPrinter::while_loop(Node& node, const std::vector<Field>& inputs) {
  std::vector<Printed> carried = operands(node, inputs, 2, 3);
  const std::vector<Printed> more = operands(node, inputs, 3, inputs.size());
  std::vector<Printed> all = carried;
  all.insert(all.end(), more.begin(), more.end());
  size_t conditions = 0, made = 0;
  const std::string test = subgraph(node, inputs[0], all, conditions);
  const std::string body = subgraph(node, inputs[1], all, made);
  const auto results = results_of(node);
  if (conditions != 1 || made != carried.size() || made != results.size())
    node.field.bad("got a loop over ", carried.size(), " values with ", made, " new ones and ",
                   results.size(), " results, expected as many of each");
  std::string into;
  for (size_t i = 0; i < carried.size(); ++i) {
    const TypePtr type = carried[i].type;
    const std::string& name = results[i].first;
    const std::string variable = name.empty() ? node.scope.names.unique("_carried")
                                              : declare(node.field, node.scope, name, type).text;
    node.line(variable + " = " + carried[i].text);
    all[i].text = variable;
    into += variable + ", ";
  }
  const std::string go = node.scope.names.unique("_go"), found = node.scope.names.unique("_found");
  const auto ask = [&](bool inside) {
    const std::string call = found + ", = " + test + "(" + joined(all) + ")";
    const std::string set = go + " = bool(" + found + ")";
    if (inside) node.deeper(call), node.deeper(set);
    else node.line(call), node.line(set);
  };
  ask(false);
  node.line("while " + go + ":");
  node.deeper(into + (into.empty() ? "" : "= ") + body + "(" + joined(all) + ")");
  ask(true);
}

// A graph that runs with gradients on or off. The guard's class is in the text of the archive's
// classes.
void ExportedPrinter::grad_region(Node& node, const std::vector<Field>& inputs) {
  const std::vector<Printed> given = operands(node, inputs, 2, inputs.size());
  const std::string call = region(node, inputs[1], given);
  const std::string on = argument(inputs[0], node.scope).text;
  const std::string guard = node.scope.names.unique("_mode"), type = "__torch__.exported.GradMode";
  uses_grad_mode = true;
  node.line(guard + " = " + type + ".__new__(" + type + ")");
  node.line(node.scope.names.unique("_made") + " = (" + guard + ").__init__(" + on + ", )");
  node.line("with " + guard + ":");
  node.deeper(targets(node) + call);
}

// A graph that runs with autocast on or off: device, dtype, on, whether casts are kept, graph. The
// class is PyTorch's, so that a file that is saved means the same there.
void ExportedPrinter::autocast_region(Node& node, const std::vector<Field>& inputs) {
  const std::vector<Printed> given = operands(node, inputs, 5, inputs.size());
  const std::string call = region(node, inputs[4], given);
  std::string arguments;
  for (size_t i = 0; i < 4; ++i) arguments += argument(inputs[i], node.scope).text + ", ";
  const std::string guard = node.scope.names.unique("_casts"), type = kAutocastClass;
  uses_autocast = true;
  node.line(guard + " = " + type + ".__new__(" + type + ")");
  node.line(node.scope.names.unique("_made") + " = (" + guard + ").__init__(" + arguments + ")");
  node.line("with " + guard + ":");
  node.deeper(targets(node) + call);
}

// A graph for each slice along dimension 0 of `slices`, in order. It takes `carried` values, the
// slices and `more`. Its first results are the carried values of the next call. The others are
// stacked.
void ExportedPrinter::loop(Node& node, const Field& graph, const std::vector<Printed>& carried,
                           const std::vector<Printed>& slices, const std::vector<Printed>& more) {
  if (slices.empty()) node.field.bad("got a loop over no tensors, expected one");
  std::vector<Printed> all = carried;
  all.insert(all.end(), slices.begin(), slices.end());
  all.insert(all.end(), more.begin(), more.end());
  size_t made = 0;
  const std::string body = subgraph(node, graph, all, made);
  const auto results = results_of(node);
  if (made != results.size() || made < carried.size())
    node.field.bad("got a graph of ", made, " results, expected ", results.size(), ", at least ",
                   carried.size());
  Namer& names = node.scope.names;
  std::string into;
  for (size_t i = 0; i < carried.size(); ++i) {
    all[i].text = names.unique("_carried");
    node.line(all[i].text + " = " + carried[i].text);
    into += all[i].text + ", ";
  }
  std::vector<std::string> items, lists;
  for (size_t i = carried.size(); i < made; ++i) {
    items.push_back(names.unique("_item"));
    lists.push_back(names.unique("_items"));
    into += items.back() + ", ";
    node.line(lists.back() + " = annotate(List[Tensor], [])");
  }
  const std::string place = names.unique("_place");
  for (size_t i = 0; i < slices.size(); ++i)
    all[carried.size() + i].text = "torch.select(" + slices[i].text + ", 0, " + place + ")";
  node.line("for " + place + " in range(torch.size(" + slices[0].text + ", 0)):");
  node.deeper(into + (into.empty() ? "" : "= ") + body + "(" + joined(all) + ")");
  for (size_t i = 0; i < lists.size(); ++i)
    node.deeper(names.unique("_added") + " = torch.append(" + lists[i] + ", " + items[i] + ")");
  for (size_t i = 0; i < made; ++i) {
    const auto& [name, type] = results[i];
    if (name.empty()) continue;
    const std::string value =
        i < carried.size() ? all[i].text : "torch.stack(" + lists[i - carried.size()] + ")";
    node.line(declare(node.field, node.scope, name, type).text + " = " + value);
  }
}

void ExportedPrinter::scan(Node& node, const std::vector<Field>& inputs) {
  const std::vector<Printed> first = operands(node, inputs, 1, 2);
  const std::vector<Printed> slices = operands(node, inputs, 2, 3);
  loop(node, inputs[0], first, slices, operands(node, inputs, 3, 4));
}

void ExportedPrinter::map(Node& node, const std::vector<Field>& inputs) {
  const std::vector<Printed> slices = operands(node, inputs, 1, 2);
  loop(node, inputs[0], {}, slices, operands(node, inputs, 2, 3));
}

// Result i is the graph's of result i - 1 and of slice i; the first is slice 0. PyTorch groups the
// slices in another way: the graph is associative.
void ExportedPrinter::associative_scan(Node& node, const std::vector<Field>& inputs) {
  const std::vector<Printed> slices = operands(node, inputs, 1, 2);
  const std::vector<Printed> more = operands(node, inputs, 2, 3);
  if (slices.empty()) node.field.bad("got a loop over no tensors, expected one");
  std::vector<Printed> all = slices;
  all.insert(all.end(), slices.begin(), slices.end());
  all.insert(all.end(), more.begin(), more.end());
  size_t made = 0;
  const std::string body = subgraph(node, inputs[0], all, made);
  const auto results = results_of(node);
  if (made != slices.size() || made != results.size())
    node.field.bad("got a graph of ", made, " results for ", slices.size(), " tensors and ",
                   results.size(), " results, expected as many of each");
  Namer& names = node.scope.names;
  std::vector<std::string> lists;
  const std::string place = names.unique("_place");
  std::string into;
  for (size_t i = 0; i < made; ++i) {
    all[i].text = names.unique("_item");
    lists.push_back(names.unique("_items"));
    into += all[i].text + ", ";
    node.line(all[i].text + " = torch.select(" + slices[i].text + ", 0, 0)");
    node.line(lists.back() + " = [" + all[i].text + "]");
    all[made + i].text = "torch.select(" + slices[i].text + ", 0, torch.add(" + place + ", 1))";
  }
  node.line("for " + place + " in range(torch.sub(torch.size(" + slices[0].text + ", 0), 1)):");
  node.deeper(into + "= " + body + "(" + joined(all) + ")");
  for (size_t i = 0; i < made; ++i)
    node.deeper(names.unique("_added") + " = torch.append(" + lists[i] + ", " + all[i].text + ")");
  for (size_t i = 0; i < made; ++i)
    if (const auto& [name, type] = results[i]; !name.empty())
      node.line(declare(node.field, node.scope, name, type).text + " = torch.stack(" + lists[i] +
                ")");
}

std::string ExportedPrinter::region(Node& node, const Field& graph,
                                    const std::vector<Printed>& given) {
  size_t made = 0;
  const std::string method = subgraph(node, graph, given, made);
  if (made != results_of(node).size())
    node.field.bad("got a graph of ", made, " results, expected ", results_of(node).size());
  return method + "(" + joined(given) + ")";
}

}  // namespace ramet::script
