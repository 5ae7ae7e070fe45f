#include "tools/see/stepper.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/graph_observer.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/thread_local_state.h"
#include "tools/see/value_text.h"

using ramet::detail::tls;

namespace ramet {
namespace see {

using autograd::Node;

// Note [A backward pass that stops]
// The backward runs on a thread of its own. It waits inside the observer's calls while the user's
// thread reads its state; only one of the two runs at a time. The rejected option: a second stack
// on the user's thread (ucontext). While the user reads, every thread_local would have its value
// from the middle of the backward pass. Such are grad mode, current device, the running pass,
// "inside an observer" and exceptions being handled. Each step would have to save and restore them
// by hand, for sanitizers, too. With a thread the language does this. The thread gets the caller's
// state as devices' workers do (ThreadLocalState), and the operation counter goes both ways. One
// effect remains: a user's own thread_local variables in a hook are those of that thread, as on a
// worker.
struct Stepper::Walk final : autograd::GraphObserver, std::enable_shared_from_this<Walk> {
  enum Until { kNode, kBehind, kBreak, kEnd };
  struct Abandoned {};  // no std::exception: no catch of the program stops it

  Tensor loss;
  StepperOptions options;
  std::map<const Node*, std::string> names;
  std::set<std::string> breaks;
  std::thread thread;
  std::exception_ptr error;
  const ThreadLocalState state;
  uint64_t counter = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool users_turn = true, over = false, abandoned = false;
  Until until = kNode;

  // Where it stands.
  bool standing = false, before = false;
  int64_t steps = 0;
  int depth = 0;
  std::string node, leaf;
  Device device{kCPU, 0};
  std::vector<Tensor> incoming, outgoing;
  std::vector<std::string> targets;
  Tensor *in = nullptr, *out = nullptr;  // of the backward pass
  std::string reduced, reduced_leaves;
  Device reduced_on{kCPU, 0};

  // ---- on the thread of the backward pass ------------------------------------------------------

  void body() {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return !users_turn; });
    }
    if (!abandoned) try {
        const ThreadLocalStateGuard as_the_user(state);
        tls.counter = counter;
        const autograd::GraphObserverGuard guard(shared_from_this());
        autograd::backward({loss},
                           options.gradient().defined()
                               ? autograd::variable_list{options.gradient()}
                               : autograd::variable_list(),
                           options.retain_graph(), options.create_graph());
      } catch (const Abandoned&) {
      } catch (...) { error = std::current_exception(); }
    forget();
    const std::lock_guard lock(mutex);
    counter = tls.counter;
    over = users_turn = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    standing = users_turn = true;
    changed.notify_all();
    changed.wait(lock, [this] { return !users_turn; });
    standing = false;
    in = out = nullptr;
  }
  void forget() {
    incoming.clear();
    outgoing.clear();
    targets.clear();
  }
  bool mine() const { return std::this_thread::get_id() == thread.get_id(); }
  std::string name_of(const Node* n) const {
    const auto it = names.find(n);
    return it == names.end() ? std::string() : it->second;
  }
  std::string target_of(const Node* n) const {
    if (!n) return "";
    std::string text = n->name();
    if (const std::string leaf_name = name_of(n); !leaf_name.empty()) text += " " + leaf_name;
    return text;
  }
  void stand_at(Node& n) {
    node = n.name();
    leaf = name_of(&n);
    device = Device::from_ordinal(n.device);
    targets.clear();
    const autograd::RawEdge* const edges = n.edges();
    for (int i = 0; i < n.edge_count; ++i) targets.push_back(target_of(edges[i].node));
  }
  bool breaks_here() const { return breaks.count(node) || (!leaf.empty() && breaks.count(leaf)); }

  bool wants_one_thread() const override { return true; }
  void on_backward_begun(const void*, const std::vector<autograd::Root>&, bool) override {
    if (mine()) ++depth;
  }
  void on_backward_ended(const void*, bool) override {
    if (mine()) --depth;
  }
  void on_node_begun(Node& n, Tensor* gradients) override {
    if (!mine()) return;
    if (abandoned) throw Abandoned();
    if (until == kEnd) return;
    stand_at(n);
    outgoing.clear();
    incoming.assign(gradients, gradients + n.slot_count);
    before = true;
    in = gradients;
    if (until == kNode || (until == kBreak && breaks_here())) wait();
    if (abandoned) throw Abandoned();
  }
  void on_node_ended(Node& n, const Tensor* gradients, bool failed) override {
    if (!mine() || abandoned || failed) return;
    ++steps;
    if (until != kBehind) return incoming.clear();
    stand_at(n);  // it may have run a backward of its own
    if (gradients) outgoing.assign(gradients, gradients + n.edge_count);
    else outgoing = {static_cast<autograd::AccumulateGrad&>(n).grad};
    before = false;
    // The array of the backward pass, which is not const.
    out = const_cast<Tensor*>(gradients);
    wait();
    forget();
  }
  void on_reduce_begun(const void*, const char* kind, ArrayRef<Node*> members) override {
    if (!mine() || until == kEnd) return;
    reduced = kind == std::string("reduce_add") ? "ReduceAdd" : kind;
    reduced_leaves.clear();
    for (Node* m : members) {
      reduced_on = Device::from_ordinal(m->device);
      const std::string to = m->edge_count == 1 ? name_of(m->edges()[0].node) : name_of(m);
      if (!to.empty()) reduced_leaves += (reduced_leaves.empty() ? "" : ", ") + to;
    }
  }
  void on_reduce_ended(const void*, uint64_t) override {
    if (!mine() || abandoned || until == kEnd) return;
    ++steps;
    if (until != kBehind) return;
    forget();
    node = reduced;
    leaf = reduced_leaves;
    device = reduced_on;
    before = false;
    wait();
  }

  // ---- on the user's ---------------------------------------------------------------------------

  bool go(Until to) {
    if (over) return false;
    std::unique_lock lock(mutex);
    if (!thread.joinable()) {
      counter = tls.counter;
      thread = std::thread([this] { body(); });
    }
    until = to;
    users_turn = false;
    changed.notify_all();
    changed.wait(lock, [this] { return users_turn; });
    if (!over) return true;
    lock.unlock();
    thread.join();
    tls.counter = std::max(tls.counter, counter);
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
    return false;
  }
  void stands(const char* what) const {
    RAMET_CHECK(standing, what, over ? "the backward is over" : "no step was made yet",
                ", expected a Stepper that stands at a node");
  }
};

namespace {

void check_replacement(const char* what, const Tensor& now, const Tensor& then) {
  RAMET_CHECK(now.defined(), what, "no gradient is there, or nobody wants it: got ",
              describe(then));
  RAMET_CHECK(then.defined() && now.sizes() == then.sizes() &&
                  now.scalar_type() == then.scalar_type() && now.device() == then.device(),
              what, "another size, dtype or device: got ", describe(then), ", expected ",
              describe(now));
}

}  // namespace

Stepper::Stepper(const Tensor& loss, const Names& names, const StepperOptions& options)
    : walk_(std::make_shared<Walk>()) {
  RAMET_CHECK(loss.defined() && loss.requires_grad(), "Stepper", "loss: it has no history: got ",
              describe(loss));
  RAMET_CHECK(options.gradient().defined() || loss.numel() == 1, "Stepper",
              "only a scalar needs no gradient: got ", describe(loss));
  RAMET_CHECK(!capture::active(), "Stepper", "a step is captured: nobody looks at one");
  RAMET_CHECK(!tls.task && !devices::on_worker() && !autograd::detail::inside_graph_observer(),
              "Stepper", "got a thread that runs a backward, or a device's worker");
  walk_->loss = loss;
  walk_->options = options;
  for (const auto& [name, tensor] : names) {
    if (!tensor.defined() || !tensor.requires_grad() || !tensor.is_leaf()) continue;
    std::string& known = walk_->names[autograd::grad_accumulator(tensor.impl())];
    known = known.empty() ? name : known + " = " + name;
  }
}

Stepper::Stepper(const Tensor& loss, const StepperOptions& options)
    : Stepper(loss, Names(), options) {}

Stepper::Stepper(const Tensor& loss, const nn::Module& module, const StepperOptions& options)
    : Stepper(loss, module.named_parameters().pairs(), options) {}

Stepper::~Stepper() {
  Walk& w = *walk_;
  if (w.over || !w.thread.joinable()) return;
  {
    const std::lock_guard lock(w.mutex);
    w.abandoned = true;
    w.users_turn = false;
    w.changed.notify_all();
  }
  w.thread.join();
  tls.counter = std::max(tls.counter, w.counter);
}

bool Stepper::next() { return walk_->go(Walk::kBehind); }
bool Stepper::into() { return walk_->go(Walk::kNode); }
bool Stepper::run() { return walk_->go(Walk::kBreak); }
void Stepper::finish() { walk_->go(Walk::kEnd); }
void Stepper::break_at(std::string name) { walk_->breaks.insert(std::move(name)); }
void Stepper::clear_breaks() { walk_->breaks.clear(); }

bool Stepper::over() const { return walk_->over; }
int64_t Stepper::steps() const { return walk_->steps; }
bool Stepper::before() const {
  walk_->stands("Stepper::before");
  return walk_->before;
}
const std::string& Stepper::node() const {
  walk_->stands("Stepper::node");
  return walk_->node;
}
const std::string& Stepper::leaf() const {
  walk_->stands("Stepper::leaf");
  return walk_->leaf;
}
Device Stepper::device() const {
  walk_->stands("Stepper::device");
  return walk_->device;
}
int Stepper::depth() const {
  walk_->stands("Stepper::depth");
  return walk_->depth - 1;
}
const std::vector<Tensor>& Stepper::incoming() const {
  walk_->stands("Stepper::incoming");
  return walk_->incoming;
}
const std::vector<Tensor>& Stepper::outgoing() const {
  walk_->stands("Stepper::outgoing");
  return walk_->outgoing;
}
const std::vector<std::string>& Stepper::targets() const {
  walk_->stands("Stepper::targets");
  return walk_->targets;
}
const Tensor& Stepper::incoming(size_t slot) const {
  RAMET_CHECK(slot < incoming().size(), "Stepper::incoming", "slot: got ", slot,
              ", expected less than ", incoming().size());
  return incoming()[slot];
}
const Tensor& Stepper::outgoing(size_t edge) const {
  RAMET_CHECK(edge < outgoing().size(), "Stepper::outgoing", "edge: got ", edge,
              ", expected less than ", outgoing().size());
  return outgoing()[edge];
}

void Stepper::set_incoming(size_t slot, const Tensor& gradient) {
  Walk& w = *walk_;
  const Tensor& now = incoming(slot);
  RAMET_CHECK(w.before && w.in, "Stepper::set_incoming",
              "the node has run: got a Stepper behind it, expected one before it (into())");
  check_replacement("Stepper::set_incoming", now, gradient);
  w.in[slot] = w.incoming[slot] = gradient;
}
void Stepper::set_outgoing(size_t edge, const Tensor& gradient) {
  Walk& w = *walk_;
  const Tensor& now = outgoing(edge);
  RAMET_CHECK(w.out, "Stepper::set_outgoing", "a leaf delivers nothing: got ", w.node);
  check_replacement("Stepper::set_outgoing", now, gradient);
  w.out[edge] = w.outgoing[edge] = gradient;
}

std::ostream& operator<<(std::ostream& out, const Stepper& s) {
  const Stepper::Walk& w = *s.walk_;
  const ramet::detail::ClassicScope classic(out);
  if (!w.standing) return out << (w.over ? "the backward is over\n" : "no step was made yet\n");
  const std::string margin(static_cast<size_t>(s.depth()) * 2, ' ');
  out << margin << '#' << (w.before ? w.steps : w.steps - 1) << ' ' << w.node;
  if (!w.leaf.empty()) out << ' ' << w.leaf;
  out << " on " << w.device << (w.before ? ", before it runs\n" : "\n");
  for (const Tensor& t : w.incoming) out << margin << "   <- " << value_text(t) << '\n';
  for (size_t i = 0; i < w.outgoing.size(); ++i) {
    out << margin;
    if (i >= w.targets.size()) out << "   gradient now: ";
    else if (w.targets[i].empty()) continue;
    else out << "   -> " << w.targets[i] << ": ";
    out << value_text(w.outgoing[i]) << '\n';
  }
  return out;
}

}  // namespace see
}  // namespace ramet
