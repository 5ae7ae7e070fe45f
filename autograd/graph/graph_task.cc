// The general backward pass: see graph_task.h.
#include "autograd/graph/graph_task.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/engine.h"
#include "autograd/graph/function.h"
#include "autograd/graph/graph_observer_internal.h"
#include "runtime/base/thread_pool.h"
#include "runtime/base/threads_internal.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

__thread GraphTask* GraphTask::running = nullptr;
__thread GraphTask* GraphTask::running_keeper = nullptr;
__thread const GraphTask::Place* GraphTask::running_place = nullptr;

GraphTask::GraphTask(bool retain, bool create)
    : retain_(retain),
      create_(create),
      nested_(devices::on_worker()),
      outer_(running),
      keeper_(running_keeper),
      place_(running_place),
      home_(nested_ ? devices::worker() : tls.cpu_device),
      observed_(graph_observed()),
      one_thread_(!ramet::detail::has_threads() || capture::active() ||
                  (observed_ && detail::an_observer_wants_one_thread())) {}

GraphTask::~GraphTask() {
  buckets_.release(this);
  for (const auto& f : at_end_) try {  // for a pass that did not reach its end
      f(true);
    } catch (...) {}
}

// ---- preparation --------------------------------------------------------------------------------

void GraphTask::prepare(std::vector<Root>& roots, ArrayRef<RawEdge> captures,
                        std::vector<Tensor>* captured) {
  captured_ = captured;
  if (observed_) observed_pass_ = std::make_unique<detail::ObservedWalk>(this, roots, create_);
  order_.visit(roots);
  if (captured) order_.keep_what_leads_to(captures);
  else buckets_.begin(order_, *this, /*claim=*/!create_);
  note_special_nodes();
  share_threads();
  base_ = tls.counter;
  // Reserve numbers for the operations that create_graph records.
  tls.counter += (order_.nodes().size() + 1) << 12;
  start(roots);
}

void GraphTask::note_special_nodes() {
  for (Node* n : order_.nodes()) {
    users_code_ = users_code_ || n->runs_users_code();
    leaves_at_once_ =
        leaves_at_once_ || (n->flags & Node::kSink && n->extra && !n->extra->post.empty());
    if (n->flags & Node::kInTurn) in_turn_.add(n);
    if (n->flags & Node::kFunction) functions_.add(static_cast<FunctionNode*>(n));
  }
}

// Note [Shares]
void GraphTask::share_threads() {
  bool used[kMaxDevices] = {};
  int devices = 0;
  for (Node* n : order_.nodes())
    if (!(n->flags & Node::kSink) && !std::exchange(used[n->device], true)) ++devices;
  several_devices_ = devices > 1;
  share_ = tls.share;
  if (!several_devices_ || one_thread_) return;
  const int threads = tls.share ? tls.share : get_num_threads();
  share_ = static_cast<uint8_t>(std::clamp(threads / devices, 1, 255));
}

void GraphTask::start(std::vector<Root>& roots) {
  const std::lock_guard lock(mutex_);  // the first push may start a worker
  for (Root& r : roots) {
    Entry& entry = order_[r.node.get()];
    entry.contributions.push_back({0, r.slot, std::move(r.grad)});
    if (entry.waits == 0) ready(r.node.get(), entry, r.node->device), entry.waits = -1;
  }
}

// ---- running what is ready ----------------------------------------------------------------------

std::vector<Tensor> GraphTask::collect(Node* n, Entry& entry) {
  using Contribution = GraphOrder::Contribution;
  std::stable_sort(entry.contributions.begin(), entry.contributions.end(),
                   [](const Contribution& a, const Contribution& b) { return a.key < b.key; });
  std::vector<Tensor> in(n->slot_count);
  for (Contribution& c : entry.contributions)
    if (c.gradient.defined())
      in[c.slot] = in[c.slot].defined() ? accumulate(std::move(in[c.slot]), c.gradient)
                                        : std::move(c.gradient);
  entry.contributions.clear();
  // A gradient that the outer pass keeps arrives at the end, with those that other Functions bring
  // to the slot.
  const bool kept = n->flags & Node::kReduce && n->slot_count > 1 && keeper();
  if (RAMET_UNLIKELY(capture::active())) note_hooks(n);
  for (uint32_t s = 0; s < in.size() && !kept; ++s)
    if (in[s].defined()) n->arrived(in[s], s);
  for (auto [slot, index] : entry.captures) (*captured_)[size_t(index)] = in[slot];
  return in;
}

void GraphTask::failed(uint64_t rank) {
  const std::lock_guard lock(mutex_);
  failure_.note(rank);
}

// Reduces all members of a bucket.
std::vector<Tensor> GraphTask::reduce(
    ReduceBucket& bucket, const std::vector<std::pair<Node*, std::vector<Tensor>>>& in) {
  // The code that sends gradients to other processes reports that itself.
  if (!observed_ || !(in[0].first->flags & Node::kReduce)) return bucket.reduce(in, *this);
  std::vector<Node*> members;
  for (const auto& [node, slots] : in) members.push_back(node);
  const detail::ObservedReduction observed(&bucket, "reduce_add", members);
  return bucket.reduce(in, *this);
}

void GraphTask::process(const Ready& r, const std::vector<Member>& members,
                        std::vector<Delivery>& out) {
  if (r.bucket) process_bucket(*r.bucket, members, out);
  else process_node(r.node, out);
}

// One reduction of all members. A hook that fails, before or after the sum, fails its own parameter
// alone. So what fails does not depend on the plan of the buckets.
void GraphTask::process_bucket(ReduceBucket& bucket, const std::vector<Member>& members,
                               std::vector<Delivery>& out) {
  std::vector<std::pair<Node*, std::vector<Tensor>>> in;
  std::vector<uint64_t> ranks;
  for (const auto& [n, entry] : members) {
    try {
      in.emplace_back(n, collect(n, *entry));
      ranks.push_back(entry->rank);
    } catch (...) { failed(entry->rank); }
  }
  if (in.empty()) return;
  std::vector<Tensor> sums = reduce(bucket, in);
  for (size_t i = 0; i < in.size(); ++i) {
    try {
      Node* n = in[i].first;
      bucket.on_reduced(n, sums[i]);
      if (n->flags & Node::kSink) {
        in[i].second.clear();  // `sums` alone holds it: it need not be copied
        if (sums[i].defined()) run_node(n, &sums[i], nullptr);
        sums[i] = Tensor();  // the leaf alone has it
        static_cast<LeafBucket&>(bucket).on_accumulated(static_cast<AccumulateGrad*>(n));
      } else {
        if (observed_) tell_delivered(this, *n, &sums[i]);
        out.emplace_back(n->edges()[0], ranks[i], std::move(sums[i]));
      }
    } catch (...) { failed(ranks[i]); }
  }
}

void GraphTask::process_node(Node* n, std::vector<Delivery>& out) {
  Entry& entry = order_[n];
  std::vector<Tensor> in = collect(n, entry), grads(n->edge_count);
  const bool any = std::any_of(in.begin(), in.end(), [](const Tensor& t) { return t.defined(); });
  const bool capture_only = captured_ && (n->flags & Node::kSink || !order_.leads_to_wanted(n));
  if (any && !capture_only && entry.wanted) run_in_place(n, entry, in.data(), grads.data());
  if (observed_) tell_delivered(this, *n, grads.data());
  for (int i = 0; i < n->edge_count; ++i)
    if (n->edges()[i].node)
      out.emplace_back(n->edges()[i], entry.rank, std::move(grads[size_t(i)]));
}

// Runs a node so that backward passes inside it find this pass.
void GraphTask::run_in_place(Node* n, const Entry& entry, Tensor* in, Tensor* out) {
  const bool of_replica =
      n->flags & Node::kFunction && static_cast<const FunctionNode*>(n)->of_replica();
  const ScopedValue<GraphTask*> keeper(running_keeper, of_replica ? this : running_keeper);
  const Place place{running_place, entry.rank};
  const ScopedValue<const Place*> at(running_place, &place);
  run_node(n, in, out);
  if (!retain_) n->release_saved();
}

void GraphTask::run_lane(int device) {
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[device];
  const ScopedValue<GraphTask*> task(tls.task, this), pass(running, this),
      keeper(running_keeper, keeper_);
  const ScopedValue<const Place*> place(running_place, place_);
  const ScopedValue<uint8_t> share(tls.share, share_);
  const uint64_t counter = tls.counter;
  std::vector<Delivery> out;
  while (!lane.heap.empty()) {
    std::pop_heap(lane.heap.begin(), lane.heap.end());
    const Ready r = lane.heap.back();
    lane.heap.pop_back();
    std::vector<Member> members;
    if (r.bucket) members = buckets_.take(r.bucket);
    if (r.bucket && members.empty()) continue;  // taken by an earlier entry, after a failure
    lock.unlock();
    // Nodes recorded by this one are numbered from its rank. Their order, hence the bits of a
    // second backward pass, does not depend on which device was quicker.
    const uint64_t rank = r.bucket ? members[0].second->rank : r.rank;
    tls.counter = base_ + (rank << 12);
    try {
      out.clear();
      process(r, members, out);
    } catch (...) {
      // A failed node delivers nothing, and all that does not depend on it still runs. So which
      // errors occur, and which one is thrown in the end (the first in the order), does not depend
      // on timing either.
      out.clear();
      failed(rank);
    }
    lock.lock();
    finished(r);
    for (auto& [e, key, g] : out) deliver(e, key, std::move(g), device);
  }
  out.clear();
  tls.counter = counter;
  if (device == home_) return;
  lane.active = false;
  --active_;
  changed_.notify_all();
}

bool GraphTask::run_another_lane() {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (device == home_ || lanes_[device].heap.empty()) continue;
    ++active_;  // run_lane() takes it back
    ThreadLocalStateGuard state(state_);
    AutoGradMode mode(create_);
    const DeviceGuard current(Device::from_ordinal(device));
    run_lane(device);
    return true;
  }
  return false;
}

// ---- scheduling ---------------------------------------------------------------------------------

void GraphTask::deliver(RawEdge e, uint64_t key, Tensor g, int lane) {
  // a source that no longer wants its gradient
  if (!e.node) return;
  Entry& entry = order_[e.node];
  if (g.defined()) entry.contributions.push_back({key + 1, e.slot, std::move(g)});
  if (--entry.waits == 0) ready(e.node, entry, lane);
}

// Note [Hooks of leaves]
// A hook on what a leaf has accumulated may be an optimizer's step. Such a step drops the gradient,
// so that a backward pass never holds all of them at a time. The hook may also read other leaves.
// Where there is such a hook, every leaf takes its gradient as soon as that is complete, before
// anything else on its device. Otherwise leaves come last. The fast pass does not know when a
// gradient is complete: operations on such a leaf inherit kSpans.
void GraphTask::ready(Node* n, Entry& entry, int lane) {
  if (observed_) detail::tell_observers([&](GraphObserver& o) { o.on_node_ready(this, *n); });
  if (ReduceBucket* b = n->bucket(); b && buckets_.contains(b)) {
    if (observed_ && n->flags & Node::kReduce)
      detail::tell_observers([&](GraphObserver& o) { o.on_slot_filled(b, *n); });
    const bool full = buckets_.add(b, n, &entry);
    b->on_last_contribution(n, entry.contributions.size());
    // The thread that delivers the last gradient of a bucket reduces it before anything else: that
    // is the overlap.
    if (full) push(lane, {Ready::kBuckets, 0, nullptr, b});
    return;
  }
  if (RAMET_UNLIKELY(n->flags & Node::kInTurn) && !in_turn_.may_run(n)) return;
  const bool at_once = leaves_at_once_ && n->flags & Node::kSink;
  push(n->device, {at_once ? Ready::kLeaves : Ready::kNodes, entry.rank, n, nullptr});
}

void GraphTask::finished(const Ready& r) {
  if (!r.node || !(r.node->flags & (Node::kInTurn | Node::kFunction))) return;
  if (r.node->flags & Node::kFunction) functions_.remove(r.node);
  if (!(r.node->flags & Node::kInTurn)) return;
  if (Node* const n = in_turn_.finish())
    push(n->device, {Ready::kNodes, order_[n].rank, n, nullptr});
}

void GraphTask::push(int device, Ready r) {
  Lane& lane = lanes_[device];
  lane.heap.push_back(r);
  std::push_heap(lane.heap.begin(), lane.heap.end());
  if (device == home_) return changed_.notify_all();  // the thread that began the pass runs it
  if (one_thread_ || lane.active) return;
  lane.active = true;
  ++active_;
  post_lane(device);
}

// Workers are never parked inside a backward pass: a lane is posted when it has work, and ends when
// it has none.
void GraphTask::post_lane(int device) {
  const uint64_t ticket = devices::post(Device::from_ordinal(device), [this, device] {
    try {
      ThreadLocalStateGuard state(state_);
      AutoGradMode mode(create_);
      const DeviceGuard current(Device::from_ordinal(device));
      run_lane(device);
    } catch (...) {  // no memory for what the lane itself needs: run() throws that
      failed(0);
      const std::lock_guard lock(mutex_);
      lanes_[device].heap.clear();
      lanes_[device].active = false;
      --active_;
      changed_.notify_all();
    }
  });
  if (nested_) posted_.push_back(ticket);
}

// ---- the end ------------------------------------------------------------------------------------

void GraphTask::run() {
  wait_for_lanes();
  buckets_.end();
  if (!failure_.any()) {
    try {
      send_kept();
    } catch (...) { failed(detail::FirstFailure::kAfterNodes); }
  }
  buckets_.release(this);  // buckets may be destroyed at the end
  call_at_end();
  failure_.rethrow();
  if (observed_pass_) observed_pass_->failed = false;
}

void GraphTask::wait_for_lanes() {
  for (;;) {
    run_lane(home_);
    if (one_thread_ && run_another_lane()) continue;
    std::unique_lock lock(mutex_);
    // Inside a task of a worker: other threads may wait for tasks in its queue, so run those too.
    while (nested_ && !posted_.empty()) {
      const uint64_t ticket = posted_.back();
      posted_.pop_back();
      lock.unlock();
      devices::wait(ticket);
      lock.lock();
    }
    changed_.wait(lock, [&] { return active_ == 0 || !lanes_[home_].heap.empty(); });
    if (active_ != 0 || !lanes_[home_].heap.empty()) continue;
    if (!failure_.any()) return;
    // Complete members of buckets that will never be full do not depend on what failed.
    for (ReduceBucket* b : buckets_.waiting()) push(home_, {Ready::kBuckets, 0, nullptr, b});
    if (lanes_[home_].heap.empty()) return;
  }
}

// Runs the kept sums over replicas, after everything else, and the nodes that they lead to.
void GraphTask::send_kept() {
  std::vector<Root> roots = nested_sums_.take();
  if (roots.empty()) return;
  const ScopedValue<GraphTask*> pass(running, this);
  GraphTask task(retain_, create_);
  task.prepare(roots, {}, nullptr);
  task.run();
}

void GraphTask::call_at_end() {
  for (const auto& f : std::exchange(at_end_, {})) {
    try {
      f(failure_.any());
    } catch (...) { failed(detail::FirstFailure::kAfterNodes); }
  }
}

}  // namespace autograd
}  // namespace ramet
