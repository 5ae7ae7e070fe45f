// Why a parameter has no gradient.
#include <algorithm>
#include <set>
#include <utility>

#include "tools/see/findings_internal.h"

namespace ramet {
namespace see {
namespace {

// An operation or a movement, as what goes in and what comes out.
struct Call {
  uint64_t start;
  const std::vector<Id>*in, *out;
  Id operation;                  // -1: a movement
  bool each_on_its_own = false;  // what came of one tensor is the one at its place
};

class Gradients {
 public:
  explicit Gradients(const RecordingData& d)
      : d_(d), reached_(d.nodes.size()), used_(d.nodes.size()), accumulated_(d.nodes.size()) {
    for (size_t i = 0; i < d.operations.size(); ++i) {
      const OperationRow& op = d.operations[i];
      calls_.push_back({op.start, &op.inputs, &op.outputs, static_cast<Id>(i)});
    }
    for (const MovementRow& m : d.movements)
      calls_.push_back(
          {m.start, &m.from, &m.to, -1,
           m.kind == "broadcast" && !m.from.empty() && m.to.size() % m.from.size() == 0});
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const Call& a, const Call& b) { return a.start < b.start; });
    std::vector<Id> stack;
    const auto reach = [&](Id n) {
      if (!row(d.nodes, n) || reached_[static_cast<size_t>(n)]) return;
      reached_[static_cast<size_t>(n)] = true;
      stack.push_back(n);
    };
    for (const EventRow& e : d.events) {
      if (e.kind == "backward_begin") backward_ran_ = true;
      // A backward of several roots names one of them: every node that ran was reached, too.
      if (e.kind == "backward_begin" || e.kind == "begin") reach(e.node);
      if (e.kind == "accumulated" && row(d.nodes, e.node))
        accumulated_[static_cast<size_t>(e.node)] = true;
      if (e.kind == "failed" && !failed_) failed_ = &e;
    }
    while (!stack.empty()) {
      const NodeRow& n = d.nodes[static_cast<size_t>(stack.back())];
      stack.pop_back();
      for (const NodeRow::Edge& e : n.edges) reach(e.to);
    }
    users_.resize(d.nodes.size());
    for (size_t i = 0; i < d.nodes.size(); ++i)
      for (const NodeRow::Edge& e : d.nodes[i].edges)
        if (row(d.nodes, e.to)) {
          used_[static_cast<size_t>(e.to)] = &d.nodes[i];
          users_[static_cast<size_t>(e.to)].push_back(static_cast<Id>(i));
        }
  }

  bool backward_ran() const { return backward_ran_; }
  bool came(const ParameterRow& p) const {
    return p.gradient >= 0 || (row(d_.nodes, p.node) && accumulated_[static_cast<size_t>(p.node)]);
  }

  // The words after "has no gradient: ", and the operation that they name.
  std::pair<std::string, Id> why(const ParameterRow& p) const {
    const NodeRow* const node = row(d_.nodes, p.node);
    const NodeRow* const user = node ? used_[static_cast<size_t>(p.node)] : nullptr;
    if (node && reached_[static_cast<size_t>(p.node)]) {
      if (failed_) {
        const NodeRow* at = row(d_.nodes, failed_->node);
        return {"the backward failed before it came, in " + (at ? node_of(d_, *at) : "a node") +
                    (failed_->text.empty() ? "." : ": " + failed_->text),
                at ? at->operation : -1};
      }
      return {"the backward came to it and brought none" +
                  (user ? ": " + node_of(d_, *user) + " gives this input no gradient."
                        : std::string(".")),
              user ? user->operation : -1};
    }
    const std::set<Id> came = results_of_users(p.node);
    std::set<Id> start = came;
    start.insert(p.tensor);
    const std::vector<size_t> users = behind(start, 0);
    const bool computed = std::any_of(users.begin(), users.end(),
                                      [this](size_t i) { return calls_[i].operation >= 0; });
    if (!computed && !user && takes_without_history(p, came, users) < 0)
      return {"the forward never used it.", -1};
    for (const size_t i : users) {
      if (calls_[i].operation < 0) continue;
      const OperationRow& op = d_.operations[static_cast<size_t>(calls_[i].operation)];
      if (op.node >= 0 || !leads_to_loss(op, i + 1)) continue;
      const bool detach = op.name.starts_with("detach") || op.name.ends_with("data");
      return {detach ? "its history was cut by " + call_of(d_, op) + "."
                     : call_of(d_, op) +
                           " keeps no history (no_grad mode, or a result without gradients), so "
                           "nothing behind it leads back.",
              calls_[i].operation};
    }
    if (const Id at = takes_without_history(p, came, users); at >= 0)
      return {"its history was cut: " + call_of(d_, d_.operations[static_cast<size_t>(at)]) +
                  " is given what came of it without its history, as detach() and data leave it.",
              at};
    Id last = user ? user->operation : -1;
    for (const size_t i : users)
      if (calls_[i].operation >= 0) last = calls_[i].operation;
    const OperationRow* op = row(d_.operations, last);
    return {"it was used, but no history leads from there to the loss" +
                (op ? "; the last use that is known is " + call_of(d_, *op) +
                          ". Nobody used what came of it, or without history (detach(), no_grad)."
                    : std::string(".")),
            last};
  }

 private:
  // The calls from `first` on that take one of the tensors, or a result of such a call.
  std::vector<size_t> behind(std::set<Id> tensors, size_t first) const {
    std::vector<size_t> found;
    for (size_t i = first; i < calls_.size(); ++i) {
      const Call& c = calls_[i];
      if (std::none_of(c.in->begin(), c.in->end(), [&](Id t) { return tensors.count(t) != 0; }))
        continue;
      found.push_back(i);
      if (!c.each_on_its_own) {
        tensors.insert(c.out->begin(), c.out->end());
        continue;
      }
      for (size_t j = 0; j < c.out->size(); ++j)
        if (tensors.count((*c.in)[j % c.in->size()])) tensors.insert((*c.out)[j]);
    }
    return found;
  }

  // Results of the operations with gradients that lead to a collector. Sums of replicas may come
  // between, because replicas' parameters are tensors of their own.
  std::set<Id> results_of_users(Id node) const {
    std::set<Id> out;
    std::vector<Id> stack;
    if (row(d_.nodes, node)) stack.push_back(node);
    while (!stack.empty()) {
      const Id at = stack.back();
      stack.pop_back();
      for (const Id user : users_[static_cast<size_t>(at)]) {
        const NodeRow& n = d_.nodes[static_cast<size_t>(user)];
        if (n.reduces && n.operation < 0) stack.push_back(user);
        if (const OperationRow* op = row(d_.operations, n.operation))
          out.insert(op->outputs.begin(), op->outputs.end());
      }
    }
    out.erase(-1);
    return out;
  }

  bool leads_to_loss(const OperationRow& op, size_t next) const {
    for (const size_t i : behind({op.outputs.begin(), op.outputs.end()}, next)) {
      const OperationRow* user = row(d_.operations, calls_[i].operation);
      if (user && row(d_.nodes, user->node) && reached_[static_cast<size_t>(user->node)])
        return true;
    }
    return false;
  }

  // No event reports detach(), which computes nothing. But its result shares memory with the
  // parameter or with a tensor computed from it, and no operation made that result.
  Id takes_without_history(const ParameterRow& p, const std::set<Id>& came,
                           const std::vector<size_t>& users) const {
    const auto storage_of = [this](Id tensor) {
      const TensorRow* t = row(d_.tensors, tensor);
      return t ? t->storage : -1;
    };
    std::set<Id> storages, made{p.tensor};
    const Id own = storage_of(p.tensor);
    const auto here = [&](const ParameterRow& q) { return storage_of(q.tensor) == own; };
    if (std::count_if(d_.parameters.begin(), d_.parameters.end(), here) == 1) storages.insert(own);
    for (const Call& c : calls_) made.insert(c.out->begin(), c.out->end());
    for (const Id t : came) storages.insert(storage_of(t));
    for (const size_t i : users) {
      if (calls_[i].each_on_its_own) continue;  // copies of all parameters, in one piece of memory
      for (const Id t : *calls_[i].out) storages.insert(storage_of(t));
    }
    storages.erase(-1);
    for (size_t i = users.empty() ? 0 : users[0]; i < calls_.size(); ++i) {
      if (calls_[i].operation < 0) continue;
      const OperationRow& op = d_.operations[static_cast<size_t>(calls_[i].operation)];
      const bool reached = row(d_.nodes, op.node) && reached_[static_cast<size_t>(op.node)];
      if (!reached && !leads_to_loss(op, i + 1)) continue;
      for (const Id t : op.inputs)
        if (const TensorRow* in = row(d_.tensors, t);
            in && in->name.empty() && !made.count(t) && storages.count(in->storage))
          return calls_[i].operation;
    }
    return -1;
  }

  const RecordingData& d_;
  std::vector<Call> calls_;  // by time
  std::vector<bool> reached_;
  std::vector<const NodeRow*> used_;    // one of those with edges to the node
  std::vector<std::vector<Id>> users_;  // all of them
  std::vector<bool> accumulated_;
  const EventRow* failed_ = nullptr;
  bool backward_ran_ = false;
};

}  // namespace

void find_missing_gradients(RecordingData& d) {
  const Gradients gradients(d);
  int without = 0;
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    const ParameterRow& p = d.parameters[i];
    if (gradients.came(p)) continue;
    if (!p.requires_grad) {
      add_finding(d, "no gradient",
                  p.name + " has no gradient: it is frozen (requires_grad is false).", p.node, -1,
                  static_cast<Id>(i));
    } else if (!gradients.backward_ran()) {
      ++without;
    } else {
      const auto [text, operation] = gradients.why(p);
      add_finding(d, "no gradient", p.name + " has no gradient: " + text, p.node, operation,
                  static_cast<Id>(i));
    }
  }
  if (without > 0)
    add_finding(d, "no gradient",
                std::to_string(without) + (without == 1 ? " parameter has" : " parameters have") +
                    " no gradient: no backward ran while this was recorded.",
                -1, -1, -1);
}

}  // namespace see
}  // namespace ramet
