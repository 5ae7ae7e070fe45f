// One backward of a GradientReducer: which buckets it has, what is put into them, and how they are
// reduced.
#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/ops.h"
#include "autograd/ops/front/common_internal.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"

namespace ramet::distributed::detail {

using autograd::AccumulateGrad;

namespace {

// Several reducers of one group may take part in one backward. If it has several devices, chance
// decides which reducer's next bucket is complete first. But all ranks must reduce in one order. So
// the first reducer reduces its buckets while the backward runs, and the others reduce theirs at
// its end.
class Leaders {
 public:
  bool lead(const ProcessGroup* group, const GradientReducer* reducer) {
    const std::lock_guard lock(mutex_);
    return of_.try_emplace(group, reducer).second;
  }
  void end(const ProcessGroup* group, const GradientReducer* reducer) {
    const std::lock_guard lock(mutex_);
    if (const auto at = of_.find(group); at != of_.end() && at->second == reducer) of_.erase(at);
  }

 private:
  std::mutex mutex_;
  std::map<const ProcessGroup*, const GradientReducer*> of_;
};
Leaders& leaders() {
  static auto* all = new Leaders;  // never destroyed: a thread may be in a backward when the
                                   // program ends
  return *all;
}

}  // namespace

void GradientReducer::begin_buckets(bool with_sync) {
  began_ = Clock::now();
  next_ = 0;
  buckets_.clear();
  completed_.clear();
  for (Unit& unit : units_) unit.in.clear(), unit.rows = 0;
  publish_trainable();
  if (trainable() != planned_) make_plan();  // the same on all ranks
  syncing_ = false;
  for (const auto& list : plan_) {
    Bucket& b = buckets_.emplace_back();
    for (size_t i : list) {
      Leaf& leaf = *leaves_[i];
      leaf.ready_at = 0;
      leaf.unrounded = {};
      const Unit& unit = units_[leaf.unit];
      const bool sync =
          options_.sync_mode == SyncMode::at_forward ? unit.sync_of_forward : unit.sync;
      // Frozen parameters take no part.
      const bool takes_part =
          leaf.tensor.requires_grad() && (with_sync || sync) && !unit.owner.expired();
      leaf.member = takes_part ? static_cast<int>(b.members.size()) : -1;
      if (!takes_part) continue;
      b.members.emplace_back().leaf = i;
      syncing_ = true;
    }
  }
}

GradientReducer::Member* GradientReducer::member_of(size_t leaf) {
  const Leaf& l = *leaves_[leaf];
  return l.member < 0 ? nullptr : &buckets_[l.bucket].members[static_cast<size_t>(l.member)];
}

void GradientReducer::begin_backward(autograd::GraphTask& task) {
  if (task_ && task.within(*task_)) return;
  RAMET_CHECK(!task_, "ddp",
              "a second backward through this module while one runs: its buckets would mix, "
              "expected one at a time, or one inside the other");
  task_ = &task;
  try {
    begin_buckets(/*with_sync=*/false);
  } catch (...) {
    task_ = nullptr;
    abort("a backward could not begin on this rank");
    throw;
  }
  leads_ = syncing_ && leaders().lead(group_.get(), this);
  // The module may be destroyed while its backward runs.
  task.at_end([self = shared_from_this()](bool failed) { self->on_backward_ended(failed); });
}

void GradientReducer::on_leaf_in_graph(size_t leaf, autograd::GraphTask& task) {
  const std::lock_guard lock(mutex_);
  begin_backward(task);
  if (!member_of(leaf)) return;
  Bucket& b = buckets_[leaves_[leaf]->bucket];
  if (b.launched) fail_too_late("ddp", leaves_[leaf]->name);
  ++b.waits;
}

// A gradient that all ranks share already must not be reduced again, so the new one is reduced
// alone. Gradients that inner backwards bring to the same leaf are added to the new one.
void GradientReducer::on_gradient_ready(size_t index, const Tensor& g) {
  const std::lock_guard lock(mutex_);
  Leaf& leaf = *leaves_[index];
  Member* m = member_of(index);
  const Unrounded wide = std::exchange(leaf.unrounded, {});
  if (!g.defined()) return;
  if (!m) return note_unsynchronised(leaf);
  if (m->reached) {
    m->wide = Tensor();
    return;
  }
  const std::lock_guard its(leaf.sink->mutex);
  if (leaf.sink->mark == common) m->before = std::exchange(leaf.sink->grad, Tensor());
  m->old = leaf.sink->grad.defined();
  m->reached = true;
  if (m->old) check_unsynchronised(leaf);
  else if (wide.is_of(g) && !(leaf.sink->extra && !leaf.sink->extra->post.empty()))
    m->wide = wide.sum;  // rounding it gives what is accumulated
}

// A rank that adds up several shards of a tree does not round their sum: it is a part of the tree's
// sum.
bool GradientReducer::adds_unrounded() const {
  return options_.order.is_tree() && group_->size() > 1 && options_.order.leaves() > group_->size();
}

ScalarType GradientReducer::wire_dtype(const Leaf& leaf) const {
  const ScalarType its = leaf.tensor.scalar_type();
  return adds_unrounded() && autograd::is_narrow(its) ? kFloat : its;
}

void GradientReducer::on_unrounded_sum(size_t leaf, const Tensor& sum, const Tensor& rounded) {
  const std::lock_guard lock(mutex_);
  leaves_[leaf]->unrounded = {sum, Values(rounded)};
}

void GradientReducer::on_accumulated(size_t leaf) {
  const NoGradGuard off;
  const std::lock_guard lock(mutex_);
  if (!member_of(leaf)) return;
  completed_.push_back(leaf);
  Bucket& b = buckets_[leaves_[leaf]->bucket];
  Member& m = *member_of(leaf);
  if (m.wide.defined()) {
    const std::lock_guard its(leaves_[leaf]->sink->mutex);
    m.as_accumulated = Values(leaves_[leaf]->sink->grad);
  }
  record_gradient_time(b, m);
  if (autograd::graph_observed())
    autograd::detail::tell_observers(
        [&](autograd::GraphObserver& o) { o.on_slot_filled(known_as(b), *leaves_[leaf]->sink); });
  --b.waits;
  if (leads_) launch_ready_buckets();
}

// May an inner backward still add to the bucket, or communicate with the ranks in this group? In
// the second case, where another device's lane launches buckets, their order relative to the inner
// operations would depend on timing.
bool GradientReducer::may_grow(const Bucket& b) const {
  if (!task_) return false;
  return task_->may_meet() || std::ranges::any_of(b.members, [this](const Member& m) {
           return task_->may_reach(leaves_[m.leaf]->sink);
         });
}

// Launches in the order of the plan, which is the same on all ranks.
void GradientReducer::launch_ready_buckets() {
  for (; next_ < buckets_.size(); ++next_) {
    Bucket& b = buckets_[next_];
    if (b.waits > 0 || may_grow(b)) return;
    take_gradients(b);
    const bool fresh = std::ranges::none_of(b.members, [](const Member& m) { return m.old; });
    launch_bucket(b, next_, fresh);
  }
}

void GradientReducer::launch_bucket(Bucket& b, size_t index, bool fresh) {
  b.report = std::make_shared<MemberReport>();
  if (b.members.empty()) return;
  const auto name = [&](const Member& m) { return leaves_[m.leaf]->name; };
  CollectiveOptions o;
  o.name = options_.name + "/bucket " + std::to_string(index) + " [" + name(b.members.front()) +
           (b.members.size() > 1 ? " .. " + name(b.members.back()) : "") + "]";
  if (!published_.frozen.empty())
    o.name += " with " + std::to_string(published_.frozen.size()) + " frozen parameters (" +
              std::to_string(published_.hash % 1000000) + ")";
  const bool divides = options_.average == Average::mean && options_.division == Division::post;
  o.op = divides && !by_active_ ? ReduceOp::average : ReduceOp::sum;
  o.order = options_.order;
  o.undefined_on_failure = fresh;
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  std::vector<bool> present;
  const double divisor = divisor_before(), weight = rows();
  for (Member& m : b.members) {
    if (m.reached && is_weighted() && !stages_.computes()) m.sent.mul_(weight);
    if (m.reached && divisor != 1) m.sent.div_(divisor);
    tensors.push_back(m.sent);
    names.push_back(name(m));
    present.push_back(m.reached);
    b.times.bytes += static_cast<int64_t>(m.sent.nbytes());
  }
  b.times.parameters = static_cast<int64_t>(b.members.size());
  b.times.launched = seconds_at(Clock::now());
  if (autograd::graph_observed()) {
    std::vector<autograd::Node*> members;
    for (const Member& m : b.members) members.push_back(leaves_[m.leaf]->sink);
    autograd::detail::tell_observers(
        [&](autograd::GraphObserver& o) { o.on_reduce_begun(known_as(b), "all_reduce", members); });
  }
  b.work =
      stages_.all_reduce(std::move(tensors), names, o, present, shadow_ ? -1 : weight, b.report);
  b.launched = true;  // there is something to wait for
}

// Stores the reduced gradients in the leaves.
void GradientReducer::store_reduced(Bucket& b, std::vector<std::string>& unused,
                                    std::vector<Synchronised>& synchronised) {
  const double divisor = divisor_after(*b.report);
  for (const Member& m : b.members) {
    const Leaf& leaf = *leaves_[m.leaf];
    const std::lock_guard its(leaf.sink->mutex);
    if (!leaf.sink->grad.defined()) continue;
    abort("a gradient was written on this rank while it was being reduced");
    fail("ddp", "the gradient of '", leaf.name,
         "' was set, or added to, while the ranks reduced it: expected that in a hook of its own "
         "parameter, or after this backward");
  }
  for (size_t i = 0; i < b.members.size(); ++i) {
    Member& m = b.members[i];
    const Leaf& leaf = *leaves_[m.leaf];
    const std::lock_guard its(leaf.sink->mutex);
    leaf.sink->mark = common;
    if (b.report->present[i]) {
      if (divisor != 1) m.sent.div_(divisor);
      if (m.sent.scalar_type() != leaf.tensor.scalar_type()) {  // rounded once, here
        const Tensor wide = std::exchange(m.sent, Tensor());
        m.sent = place_of(leaf);
        m.sent.copy_(wide);
      }
      leaf.sink->grad = std::move(m.sent);
      if (m.before.defined()) leaf.sink->grad = m.before.add_(leaf.sink->grad);
      if (!hooks_.empty()) {
        // In units other than the first, the unit's number precedes the name within the unit.
        const size_t prefix = leaf.unit ? std::to_string(leaf.unit).size() + 1 : 0;
        synchronised.push_back({leaf.unit, leaf.name.substr(prefix), leaf.tensor});
      }
    } else {
      unused.push_back(leaf.name);
      if (m.before.defined()) leaf.sink->grad = std::move(m.before);
    }
    m.sent = Tensor();
    m.before = Tensor();
  }
}

// After a failure, a bucket's values are neither this rank's gradient nor the sum: the gradients
// become undefined, or as they were.
void GradientReducer::restore_gradients(Bucket& b) {
  for (Member& m : b.members) {
    const Leaf& leaf = *leaves_[m.leaf];
    const std::lock_guard its(leaf.sink->mutex);
    leaf.sink->grad = std::exchange(m.before, Tensor());
    leaf.sink->mark = common;
    m.sent = Tensor();
  }
}

void GradientReducer::on_backward_ended(bool failed) { run_hooks(finish_backward(failed)); }

std::vector<GradientReducer::Synchronised> GradientReducer::finish_backward(bool failed) {
  const NoGradGuard off;
  const std::lock_guard lock(mutex_);
  std::vector<Synchronised> synchronised;
  task_ = nullptr;
  leaders().end(group_.get(), this);
  struct Last {
    GradientReducer& its;
    ~Last() { its.drop_removed(); }
  } const last{*this};
  if (!syncing_) {
    buckets_.clear();
    return {};
  }
  StepTimeline timeline;
  timeline.backward = seconds_at(Clock::now());
  std::exception_ptr error;
  if (failed) {
    abort("a backward failed on this rank");
  } else {
    try {
      for (Bucket& b : buckets_) b.waits = 0;
      launch_ready_buckets();
    } catch (...) {
      error = std::current_exception();
      abort("a reduction failed on this rank");  // other ranks wait for it
    }
  }
  std::vector<std::string> unused;
  bool early = false;
  for (Bucket& b : buckets_) {
    if (b.launched) {
      try {
        wait_for(b);
        for (double note : b.report->notes) early = early || (throw_early_ && note < 0);
        if (!failed && !early) {
          store_reduced(b, unused, synchronised);
          continue;
        }
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (!b.members.empty()) restore_gradients(b);
  }
  timeline.end = seconds_at(Clock::now());
  for (Bucket& b : buckets_) {
    if (b.times.gradients > 0) b.times.stalling_parameter = leaves_[b.stalling]->name;
    timeline.buckets.push_back(std::move(b.times));
  }
  buckets_.clear();
  unused_ = std::move(unused);
  if (failed) return {};
  stages_.step_done(error != nullptr);
  if (error) explain(error);
  if (early)
    throw EarlyTermination(
        "[join] Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  ++steps_;
  agree_on_order();
  timeline.step = stages_.step();
  last_step_ = std::move(timeline);
  return synchronised;
}

}  // namespace ramet::distributed::detail
