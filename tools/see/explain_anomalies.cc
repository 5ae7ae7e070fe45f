#include "tools/see/explain_anomalies.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "autograd/graph/engine.h"
#include "autograd/graph/graph_observer.h"
#include "tools/see/operation_name.h"
#include "tools/see/source_lines.h"
#include "tools/see/statistics_of.h"
#include "tools/see/value_text.h"

namespace ramet {
namespace see {

using autograd::Node;

namespace {

// The paths of the modules with a running forward on this thread, outermost first.
thread_local std::vector<const std::string*> t_modules;

Tensor borrowed(TensorImpl* impl) {
  add_ref(impl->refs);
  return Tensor(impl);
}

// The record of an operation, by its node. The node may be gone, and another one at its address.
struct Made {
  uint64_t counter;
  const std::string* module;  // null: none
  std::string arguments;      // "dim=1"
  Statistics result;          // of all of its results
  std::string shape;
};

// A NaN that the forward made. The node is only compared: it may be gone.
struct Birth {
  const Node* node;
  uint64_t counter;
  int replica;
  int generation;            // backwards before it
  std::string call, device;  // "log in encoder.1", ", on cpu:1, replica 1"
  std::vector<uintptr_t> addresses;
  std::string values;
  bool in_input;  // an input had it, which no operation made
};
constexpr size_t kMostBirths = 4096;

// Keeps the first of the births that look() gets. Numbers order the operations of one thread.
// Replicas run concurrently: the lowest replica with a birth counts, and its number is compared
// with those of operations before and after the replicas.
class First {
 public:
  void look(const Birth& b) {
    const Birth*& first = b.replica < 0 ? outside_ : inside_;
    if (!first || std::pair(b.replica, b.counter) < std::pair(first->replica, first->counter))
      first = &b;
  }
  const Birth* get() const {
    if (!outside_ || !inside_) return outside_ ? outside_ : inside_;
    return outside_->counter < inside_->counter ? outside_ : inside_;
  }

 private:
  const Birth *outside_ = nullptr, *inside_ = nullptr;
};

}  // namespace

struct ExplainAnomalies::State final : autograd::GraphObserver {
  AnomalyOptions options;
  std::string who;  // " of rank 1"
  std::vector<std::string> paths;
  std::vector<std::pair<std::shared_ptr<nn::Module>, unsigned>> hooks;
  nn::Module* model = nullptr;
  std::optional<autograd::GraphObserverGuard> guard;

  mutable std::mutex mutex;
  std::unordered_map<const Node*, Made> made;
  std::vector<Birth> births;
  int walks = 0, generation = 0;
  bool loss_is_known = false;
  std::string error;  // what the next node throws
  std::string found;

  // ---- the forward -----------------------------------------------------------------------------

  const Made* made_of(const Node* n) const {
    const auto it = n ? made.find(n) : made.end();
    return it != made.end() && it->second.counter == n->counter ? &it->second : nullptr;
  }
  std::string call_text(const Node& n) const {
    const Made* m = made_of(&n);
    std::string text = operation_name(n.name());
    if (m && !m->arguments.empty()) text += "(" + m->arguments + ")";
    if (m && m->module) text += " in " + *m->module;
    return text;
  }
  std::string line_text(const Birth& b) const {
    if (b.addresses.empty()) return "";
    const SourceRow row = SourceLines().program_line(b.addresses);
    if (row.file.empty()) return row.function.empty() ? "" : " (called in " + row.function + ")";
    return " (" + row.file.substr(row.file.rfind('/') + 1) + ":" + std::to_string(row.line) + ")";
  }
  std::string device_text(const Node& n) const {
    std::string text = ", on " + Device::from_ordinal(n.device).str();
    if (ramet::detail::tls.replica >= 0)
      text += ", replica " + std::to_string(ramet::detail::tls.replica);
    return text;
  }

  void on_operation(Node& node, ArrayRef<autograd::Input> inputs, ArrayRef<autograd::Input> results,
                    const autograd::Arguments& arguments) override {
    if (node.flags & Node::kSink || results.empty()) return;
    Made m{node.counter, t_modules.empty() ? nullptr : t_modules.back(), arguments.str(), {}, ""};
    for (const autograd::Input& r : results) {
      if (!r.impl || !is_floating(r.impl->dtype)) continue;
      const Statistics s = statistics_of(borrowed(r.impl));
      if (m.shape.empty()) {
        m.result = s;
        m.shape = short_name_of(r.impl->dtype) +
                  ramet::detail::join(IntArrayRef(r.impl->sizes(), r.impl->rank));
      }
      m.result.nans += &r == results.begin() ? 0 : s.nans;
    }
    // Read before the lock: it may wait for a GPU.
    const bool bad = m.result.nans > 0;
    struct Operand {
      bool floating = false, written = false, nan = false;
      std::string text;
    };
    std::vector<Operand> operands(bad ? inputs.size() : 0);
    std::string values;
    for (size_t i = 0; i < operands.size(); ++i) {
      TensorImpl* const t = inputs[i].impl;
      Operand& o = operands[i];
      o.floating = t && is_floating(t->dtype);
      if (!o.floating) continue;
      o.written = std::any_of(results.begin(), results.end(), [&](const autograd::Input& r) {
        return r.impl && r.impl->storage == t->storage;
      });
      o.nan = statistics_of(borrowed(t)).nans > 0;
      o.text = o.written ? "written in place" : value_text(borrowed(t));
    }
    if (bad)
      for (size_t i = 0; i < results.size(); ++i)
        if (results[i].impl)
          values +=
              "\n  result " + std::to_string(i) + ": " + value_text(borrowed(results[i].impl));
    const std::lock_guard lock(mutex);
    made.insert_or_assign(&node, std::move(m));
    if (!bad) return;
    // Which inputs had a NaN? For a tensor that was written in place only the history says it.
    bool in_input = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      if (!o.floating) continue;
      const Node* const by = i < node.edge_count ? node.edges()[i].node : nullptr;
      const Made* const source = made_of(by);
      if (source && source->result.nans > 0) return;  // it is known
      in_input = in_input || (o.nan && !o.written);
      values += "\n  input " + std::to_string(i) + ": " + o.text;
      if (source) values += "; made by " + call_text(*by);
      else if (by && by->flags & Node::kSink) values += "; a leaf";
    }
    if (births.size() >= kMostBirths) {
      std::sort(births.begin(), births.end(),
                [](const Birth& a, const Birth& b) { return a.counter < b.counter; });
      births.erase(births.begin(), births.begin() + kMostBirths / 2);
    }
    births.push_back({&node, node.counter, ramet::detail::tls.replica, generation, call_text(node),
                      device_text(node),
                      options.source_lines() ? return_addresses() : std::vector<uintptr_t>(),
                      values + infinite_operands(node), in_input});
  }

  // "\n  its infinite elements come from exp in net.2, ...": infinities are followed back.
  std::string infinite_operands(Node& from) const {
    Node* at = nullptr;
    for (Node* n = &from; n;) {
      Node* next = nullptr;
      for (int i = 0; i < n->edge_count && !next; ++i)
        if (const Made* m = made_of(n->edges()[i].node); m && m->result.infinities > 0)
          next = n->edges()[i].node;
      if (next) at = next;
      n = next;
    }
    if (!at) return "";
    return "\n  its infinite elements come from " + call_text(*at) + ", whose result is " +
           summary(*made_of(at));
  }
  static std::string summary(const Made& m) {
    std::string text = m.shape + " from " + ramet::detail::join(m.result.min) + " to " +
                       ramet::detail::join(m.result.max);
    if (m.result.nans > 0) text += ", " + std::to_string(m.result.nans) + " NaN";
    if (m.result.infinities > 0) text += ", " + std::to_string(m.result.infinities) + " infinite";
    return text;
  }

  std::string forward_text(const Birth& b, const std::string& chain) const {
    const std::string where = b.call + line_text(b) + b.device;
    return "NaN" + who + ": " +
           (b.in_input
                ? "no operation of the forward made the first one, it was there in an input of " +
                      where + ": look at the data, and at what recorded no history"
                : "the first operation of the forward that made one is " + where) +
           b.values + chain;
  }
  // Of the forward that is under way, or has just been; null: none.
  const Birth* first_birth() const {
    First first;
    for (const Birth& b : births)
      if (b.generation == generation) first.look(b);
    return first.get();
  }

  // ---- the backward ----------------------------------------------------------------------------

  bool wants_one_thread() const override { return true; }

  // The nodes that can be reached from the root, each with the one before it.
  using Reached = std::unordered_map<const Node*, const Node*>;
  static Reached reached_from(Node* root) {
    Reached from{{root, nullptr}};
    std::vector<Node*> queue{root};
    for (size_t i = 0; i < queue.size(); ++i)
      for (int e = 0; e < queue[i]->edge_count; ++e)
        if (Node* next = queue[i]->edges()[e].node; next && from.try_emplace(next, queue[i]).second)
          queue.push_back(next);
    return from;
  }
  std::string chain_text(const Reached& from, const Node* node) const {
    std::vector<const Node*> nodes;
    for (; node; node = from.at(node)) nodes.push_back(node);
    std::string text = "\n  from there to the loss: ";
    const size_t n = nodes.size();
    for (size_t i = 0; i < n; ++i) {
      if (n > 9 && i == 4) {
        text += " -> ... " + std::to_string(n - 8) + " more ...";
        i = n - 4;
      }
      text += (i ? " -> " : "") + call_text(*nodes[i]);
    }
    return text;
  }

  void on_backward_begun(const void*, const std::vector<autograd::Root>& roots, bool) override {
    const bool given = std::any_of(roots.begin(), roots.end(), [](const autograd::Root& r) {
      return r.grad.defined() && statistics_of(r.grad).nans > 0;
    });
    const std::lock_guard lock(mutex);
    if (walks++ > 0) return;
    error.clear();
    found.clear();
    loss_is_known = true;
    if (given) error = found = "NaN" + who + ": the gradient that backward() was given has one";
    for (const autograd::Root& r : roots) {
      const Made* m = made_of(r.node.get());
      loss_is_known = loss_is_known && m;
      if (!m || m->result.nans == 0) continue;
      const Reached reached = reached_from(r.node.get());
      First on_the_way;
      for (const Birth& b : births)
        if (const auto it = reached.find(b.node);
            it != reached.end() && it->first->counter == b.counter)
          on_the_way.look(b);
      const Birth* const first = on_the_way.get();
      if (!first) continue;
      error = found = forward_text(*first, chain_text(reached, first->node));
      return;
    }
  }
  void on_backward_ended(const void*, bool) override {
    const std::lock_guard lock(mutex);
    if (--walks == 0) ++generation;
  }
  void on_node_begun(Node&, Tensor*) override {
    std::string text;
    {
      const std::lock_guard lock(mutex);
      text = error;
    }
    if (!text.empty()) fail("anomaly", text);
  }
  void on_node_ended(Node& node, const Tensor* out, bool failed) override {
    if (failed || !out) return;
    for (int i = 0; i < node.edge_count; ++i) {
      if (!out[i].defined() || !is_floating(out[i].scalar_type())) continue;
      if (statistics_of(out[i]).nans == 0) continue;
      const std::string values = value_text(out[i]);
      const std::lock_guard lock(mutex);
      if (!error.empty()) return;
      const Made* m = made_of(&node);
      error = "NaN" + who +
              (loss_is_known ? ": the loss has none; " : ": the forward was not looked at; ") +
              "the first one of the backward comes from that of " + call_text(node) + ", on " +
              Device::from_ordinal(node.device).str() + "\n  gradient of its input " +
              std::to_string(i) + ": " + values;
      if (m) error += "\n  its result in the forward: " + summary(*m);
      for (int e = 0; e < node.edge_count; ++e)
        if (const Made* source = made_of(node.edges()[e].node))
          error += "\n  its input " + std::to_string(e) + " in the forward: " + summary(*source) +
                   "; made by " + call_text(*node.edges()[e].node);
      if (const Birth* b = first_birth())
        error += "\n  the forward made a NaN before, which something hid: " + b->call +
                 line_text(*b) + b->device;
      found = error;
      return;
    }
  }

  // ---- modules ---------------------------------------------------------------------------------

  void watch(nn::Module& of) {
    model = &of;
    const auto modules = of.named_modules("", false);
    paths.reserve(modules.size());  // addresses stay
    for (const auto& item : modules) {
      const std::string* path = &paths.emplace_back(item.key());
      struct Leave {
        ~Leave() { t_modules.pop_back(); }
      };
      hooks.emplace_back(item.value(), item.value()->register_forward_scope([path](nn::Module&) {
        auto leave = std::make_shared<Leave>();
        t_modules.push_back(path);
        return std::static_pointer_cast<void>(std::move(leave));
      }));
    }
  }
};

ExplainAnomalies::ExplainAnomalies(Options options) : state_(std::make_shared<State>()) {
  State& s = *state_;
  int rank = options.rank();
  const char* const own = std::getenv("RANK");
  const char* const size = std::getenv("WORLD_SIZE");
  if (rank < 0 && own && size && std::atoi(size) > 1) rank = std::atoi(own);
  if (rank >= 0) s.who = " on rank " + std::to_string(rank);
  s.options = std::move(options);
  s.guard.emplace(state_);
}

ExplainAnomalies::ExplainAnomalies(nn::Module& model, Options options)
    : ExplainAnomalies(std::move(options)) {
  state_->watch(model);
}

ExplainAnomalies::~ExplainAnomalies() {
  for (const auto& [module, handle] : state_->hooks) module->remove_forward_hook(handle);
  state_->guard.reset();
}

std::string ExplainAnomalies::report() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->found.empty()) return "[anomaly] " + state_->found;
  const Birth* const b = state_->first_birth();
  return b ? "[anomaly] " + state_->forward_text(*b, "") : "";
}

void ExplainAnomalies::check_gradients() const {
  RAMET_CHECK(state_->model, "ExplainAnomalies::check_gradients",
              "got a guard without a model, expected one with");
  for (const auto& item : state_->model->named_parameters()) {
    const Tensor& g = item.value().grad();
    if (!g.defined() || statistics_of(g).nans == 0) continue;
    const std::string known = report();
    fail("anomaly", "NaN", state_->who, ": the gradient of ", item.key(), ", ", value_text(g),
         known.empty()
             ? ": no operation of this rank made it, so it was there before, or came from "
               "another rank"
             : "\n  " + known);
  }
}

}  // namespace see
}  // namespace ramet
