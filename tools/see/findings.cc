// Findings about values: zeros, ratios of gradients, NaN. Others: findings_*.cc.
#include "tools/see/findings.h"

#include <algorithm>

#include "tools/see/findings_internal.h"

namespace ramet {
namespace see {

std::string number(double x) { return ramet::detail::formatted("%.3g", x); }

std::string percent(double part) {
  if (part < 1 && part > 0.99) return number(std::floor(part * 1000) / 10) + " %";
  return number(std::round(part * 100)) + " %";
}

std::string size_text(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  if (bytes < 1000000) return number(b / 1e3) + " kB";
  return bytes < 1000000000 ? number(b / 1e6) + " MB" : number(b / 1e9) + " GB";
}

std::string call_of(const RecordingData& d, const OperationRow& op) {
  std::string text = op.name;
  if (const ModuleRow* m = row(d.modules, op.module); m && !m->path.empty())
    text += " in " + m->path;
  if (const SourceRow* s = row(d.sources, op.source); s && s->line > 0) {
    const size_t slash = s->file.rfind('/');
    text += " (" + s->file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
            std::to_string(s->line) + ")";
  }
  return text;
}

std::string node_of(const RecordingData& d, const NodeRow& node) {
  const OperationRow* op = row(d.operations, node.operation);
  return op ? node.name + " of " + call_of(d, *op) : node.name;
}

std::string device_of(const RecordingData& d, Id device) {
  const DeviceRow* r = row(d.devices, device);
  if (!r) return "its device";
  return d.ranks > 1 ? r->name + " of rank " + std::to_string(r->rank) : r->name;
}

void add_finding(RecordingData& d, std::string kind, std::string text, Id node, Id operation,
                 Id parameter) {
  d.findings.push_back({std::move(kind), std::move(text), node, operation, parameter});
}

void find_dead_relus(RecordingData& d, const FindingLimits& limits) {
  // Statistics of the gradients that each node delivered. A node has none if no edge wants a
  // gradient.
  std::vector<const Statistics*> delivered(d.nodes.size());
  for (const EventRow& e : d.events)
    if (e.kind == "delivered" && row(d.nodes, e.node))
      if (const Statistics* s = statistics_of(d, e.tensor))
        delivered[static_cast<size_t>(e.node)] = s;
  for (size_t i = 0; i < d.operations.size(); ++i) {
    const OperationRow& op = d.operations[i];
    const NodeRow* node = row(d.nodes, op.node);
    if (op.name != "relu" && op.name != "relu_" && !(node && node->name == "ReluBackward0"))
      continue;
    const Statistics* out = op.outputs.empty() ? nullptr : statistics_of(d, op.outputs[0]);
    const Statistics* gradient = node ? delivered[static_cast<size_t>(op.node)] : nullptr;
    if (!out || !gradient || zero_share(*out) < limits.dead_zeros ||
        zero_share(*gradient) < limits.dead_zeros)
      continue;
    add_finding(
        d, "dead relu",
        call_of(d, op) + ": " + percent(zero_share(*out)) + " of its outputs are 0, and " +
            percent(zero_share(*gradient)) +
            " of the gradient that it passes on. What lies before it learns next to nothing "
            "from this batch. A step that was too large, or biases that are far below 0, "
            "bring this about.",
        op.node, static_cast<Id>(i), -1);
  }
}

namespace {

struct Layer {
  Id parameter;
  uint64_t used;  // sequence of the newest node that used it: larger is nearer to the loss
  double rms;
};

// The layers' weights that have a gradient with statistics, farthest from the loss first.
std::vector<Layer> layers_of(const RecordingData& d) {
  std::vector<uint64_t> used(d.nodes.size(), 0);
  for (const NodeRow& n : d.nodes)
    for (const NodeRow::Edge& e : n.edges)
      if (row(d.nodes, e.to) && !n.moves && !n.reduces && !n.in_backward)
        used[static_cast<size_t>(e.to)] = std::max(used[static_cast<size_t>(e.to)], n.sequence + 1);
  std::vector<Layer> layers;
  bool ordered = true;
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    const ParameterRow& p = d.parameters[i];
    const TensorRow* t = row(d.tensors, p.tensor);
    const Statistics* g = statistics_of(d, p.gradient);
    if (!t || t->shape.size() < 2 || !g || g->nans + g->infinities == g->count) continue;
    const uint64_t when = row(d.nodes, p.node) ? used[static_cast<size_t>(p.node)] : 0;
    ordered = ordered && when != 0;
    layers.push_back({static_cast<Id>(i), when, root_mean_square(*g)});
  }
  // Replicas use copies, and the parameters' own nodes do not give the copies' order. Then the
  // order is that of registration.
  if (ordered)
    std::stable_sort(layers.begin(), layers.end(),
                     [](const Layer& a, const Layer& b) { return a.used < b.used; });
  return layers;
}

std::string names_of(const RecordingData& d, const std::vector<Layer>& layers, Id without) {
  std::string text;
  size_t n = 0;
  for (const Layer& l : layers) {
    if (l.parameter == without) continue;
    if (++n > 4) continue;
    text += (text.empty() ? "" : ", ") + d.parameters[static_cast<size_t>(l.parameter)].name;
  }
  if (n == 0) return "";
  return " So it is with " + text + (n > 4 ? " and " + std::to_string(n - 4) + " more." : ".");
}

}  // namespace

void find_gradient_ratios(RecordingData& d, const FindingLimits& limits) {
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    const Statistics* g = statistics_of(d, d.parameters[i].gradient);
    if (g && g->infinities > 0)
      add_finding(d, "exploding",
                  "The gradient of " + d.parameters[i].name + " has " +
                      std::to_string(g->infinities) + " infinite elements of " +
                      std::to_string(g->count) + ".",
                  d.parameters[i].node, -1, static_cast<Id>(i));
  }
  const std::vector<Layer> layers = layers_of(d);
  std::vector<Layer> small, large;
  const double last = layers.empty() ? 0 : layers.back().rms;
  for (const Layer& l : layers) {
    if (l.rms * limits.gradient_ratio < last) small.push_back(l);
    const Statistics* value =
        statistics_of(d, d.parameters[static_cast<size_t>(l.parameter)].tensor);
    const double own = value ? root_mean_square(*value) : 0;
    if ((last > 0 && l.rms > limits.gradient_ratio * last) ||
        (own > 0 && l.rms > limits.gradient_ratio * own))
      large.push_back(l);
  }
  const auto less = [](const Layer& a, const Layer& b) { return a.rms < b.rms; };
  const auto nearest = [&] {
    return d.parameters[static_cast<size_t>(layers.back().parameter)].name;
  };
  if (!small.empty()) {
    const Layer worst = *std::min_element(small.begin(), small.end(), less);
    const ParameterRow& p = d.parameters[static_cast<size_t>(worst.parameter)];
    add_finding(d, "vanishing",
                "The gradient of " + p.name +
                    (worst.rms == 0 ? " is 0 everywhere"
                                    : " is " + number(worst.rms) + " (root mean square), 1/" +
                                          number(last / worst.rms)) +
                    (worst.rms == 0 ? ", while " + nearest() + "'s is " + number(last)
                                    : " of " + nearest() + "'s, the layer nearest to the loss") +
                    ": gradients vanish on the way back." + names_of(d, small, worst.parameter),
                p.node, -1, worst.parameter);
  }
  if (!large.empty()) {
    const Layer worst = *std::max_element(large.begin(), large.end(), less);
    const ParameterRow& p = d.parameters[static_cast<size_t>(worst.parameter)];
    const Statistics* value = statistics_of(d, p.tensor);
    const double own = value ? root_mean_square(*value) : 0;
    const bool to_own = !(last > 0 && worst.rms > limits.gradient_ratio * last);
    add_finding(d, "exploding",
                "The gradient of " + p.name + " is " + number(worst.rms) + " (root mean square), " +
                    (to_own ? number(worst.rms / own) + " times the parameter itself"
                            : number(worst.rms / last) + " times " + nearest() +
                                  "'s, the layer nearest to the loss") +
                    ": gradients explode." + names_of(d, large, worst.parameter),
                p.node, -1, worst.parameter);
  }
}

namespace {

std::string extremes(const RecordingData& d, const std::vector<Id>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Statistics* s = statistics_of(d, tensors[i]);
    if (!s) continue;
    text += (text.empty() ? " Its inputs: " : "; ") + std::string("argument ") + std::to_string(i) +
            " from " + number(s->min) + " to " + number(s->max);
    if (s->infinities > 0) text += ", " + std::to_string(s->infinities) + " infinite";
    if (s->zeros > 0) text += ", " + std::to_string(s->zeros) + " zeros";
  }
  return text.empty() ? text : text + ".";
}

bool has_nan(const RecordingData& d, Id tensor) {
  const Statistics* s = statistics_of(d, tensor);
  return s && s->nans > 0;
}

}  // namespace

void find_first_nan(RecordingData& d) {
  std::vector<size_t> order(d.operations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return d.operations[a].start < d.operations[b].start;
  });
  for (const size_t i : order) {
    const OperationRow& op = d.operations[i];
    for (const Id in : op.inputs)
      if (has_nan(d, in)) {
        const std::string& name = row(d.tensors, in)->name;
        return add_finding(
            d, "nan",
            (name.empty() ? "An input" : "The parameter or buffer " + name) + " of " +
                call_of(d, op) + " has " + std::to_string(statistics_of(d, in)->nans) +
                " NaN already, and no operation of this recording made them: look at the data, or "
                "at the step before.",
            op.node, static_cast<Id>(i), -1);
      }
    for (const Id out : op.outputs)
      if (has_nan(d, out)) {
        const Statistics& s = *statistics_of(d, out);
        return add_finding(d, "nan",
                           "The first NaN comes from " + call_of(d, op) + ": " +
                               std::to_string(s.nans) + " of " + std::to_string(s.count) +
                               " elements of its result." + extremes(d, op.inputs),
                           op.node, static_cast<Id>(i), -1);
      }
  }
  for (const EventRow& e : d.events) {
    const NodeRow* n = row(d.nodes, e.node);
    if (e.kind != "delivered" || !n || !has_nan(d, e.tensor)) continue;
    const Statistics& s = *statistics_of(d, e.tensor);
    const OperationRow* op = row(d.operations, n->operation);
    return add_finding(d, "nan",
                       "The forward has no NaN; the first one comes from the backward, from " +
                           node_of(d, *n) + ": " + std::to_string(s.nans) + " of " +
                           std::to_string(s.count) + " elements of gradient " +
                           std::to_string(e.edge) + "." +
                           (op ? extremes(d, op->inputs) : std::string()),
                       e.node, n->operation, -1);
  }
}

void find(RecordingData& d) { find(d, {}); }

void find(RecordingData& d, const FindingLimits& limits) {
  d.findings.clear();
  find_missing_gradients(d);
  find_dead_relus(d, limits);
  find_gradient_ratios(d, limits);
  find_first_nan(d);
  find_large_saved(d, limits);
  find_host_waits(d);
  find_late_replicas(d, limits);
}

}  // namespace see
}  // namespace ramet
