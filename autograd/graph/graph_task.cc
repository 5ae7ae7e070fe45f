// The general walk: see engine.h.
#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/engine.h"
#include "autograd/graph/function.h"
#include "autograd/graph/graph_observer_internal.h"
#include "runtime/capture.h"
#include "runtime/devices.h"
#include "runtime/thread_pool.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

// The general walk whose node runs on this thread. tls.task is not it inside of a fast walk.
static __thread GraphTask* around = nullptr;
// Note [Backwards inside replicas]
static __thread GraphTask* keeps = nullptr;
__thread const GraphTask::Place* GraphTask::here = nullptr;

GraphTask::GraphTask(bool retain, bool create)
    : retain_(retain),
      create_(create),
      nested_(devices::on_worker()),
      outer_(around),
      keeper_(keeps),
      place_(here),
      home_(nested_ ? devices::worker() : tls.cpu_device),
      observed_(graph_observed()),
      alone_(capture::active() || (observed_ && detail::somebody_walks_alone())) {}

// The sums over replicas, after everything else, and what they lead to.
void GraphTask::send_kept() {
  std::vector<Kept> kept = std::exchange(kept_, {});
  if (kept.empty()) return;
  std::ranges::stable_sort(kept, [](const Kept& a, const Kept& b) {
    return std::tie(a.sum->counter, a.slot, a.path) < std::tie(b.sum->counter, b.slot, b.path);
  });
  std::vector<Root> roots;
  for (Kept& k : kept) roots.push_back({k.sum, k.slot, std::move(k.gradient)});
  const ScopedValue<GraphTask*> walk(around, this);
  GraphTask task(retain_, create_);
  task.prepare(roots, {}, nullptr);
  task.run();
}

GraphTask::~GraphTask() {
  give_back();
  for (const auto& f : at_end_) try {  // of a walk that did not come to its end
      f(true);
    } catch (...) {}
}

void GraphTask::give_back() {
  for (auto& [bucket, _] : owned_) bucket->release(this);
  owned_.clear();
}

void GraphTask::prepare(std::vector<Root>& roots, ArrayRef<RawEdge> captures,
                        std::vector<Tensor>* captured) {
  captured_ = captured;
  if (observed_) tells_ = std::make_unique<detail::ObservedWalk>(this, roots, create_);
  std::vector<Node*> order, stack;
  for (Root& r : roots)
    if (info_.try_emplace(r.node.get()).second) stack.push_back(r.node.get());
  while (!stack.empty()) {  // iterative: graphs are deep
    Node* n = stack.back();
    stack.pop_back();
    order.push_back(n);
    RawEdge* edges = n->edges();
    for (int i = 0; i < n->edge_count; ++i) {
      if (!edges[i].node) continue;
      auto [it, fresh] = info_.try_emplace(edges[i].node);
      ++it->second.waits;
      if (fresh) stack.push_back(edges[i].node);
    }
  }
  // A deterministic order that does not depend on addresses or timing: later operations first, then
  // by device, leaves last.
  auto key = [](Node* n) {
    return std::pair(n->flags & Node::kSink ? 0 : n->counter, -int(n->device));
  };
  std::stable_sort(order.begin(), order.end(), [&](Node* a, Node* b) { return key(a) > key(b); });
  for (size_t i = 0; i < order.size(); ++i) info_[order[i]].rank = i;

  // only what leads to a captured input is computed
  if (captured) {
    for (size_t i = 0; i < captures.size(); ++i)
      if (auto it = info_.find(captures[i].node); it != info_.end())
        it->second.captures.emplace_back(captures[i].slot, int(i));
    // consumers come earlier in `order`, so inputs are decided first
    for (size_t i = order.size(); i-- > 0;) {
      Info& info = info_[order[i]];
      const RawEdge* const edges = order[i]->edges();
      info.wanted = !info.captures.empty() ||
                    std::any_of(edges, edges + order[i]->edge_count, [this](const RawEdge& e) {
                      return e.node && info_[e.node].wanted;
                    });
    }
  }
  for (Node* n : order)
    if (ReduceBucket* b = n->bucket(); b && info_[n].wanted && !captured) {
      const auto [group, first] = groups_.try_emplace(b);
      ++group->second.waits;
      if (first) b->on_backward_begun(*this);
      if (!owned_.count(b) && !create_ && b->claim(this)) owned_[b] = true;
    }
  for (Node* n : order) {
    users_code_ = users_code_ || n->runs_users_code();
    leaves_at_once_ =
        leaves_at_once_ || (n->flags & Node::kSink && n->extra && !n->extra->post.empty());
    if (n->flags & Node::kInTurn) turns_.push_back(n);
    if (n->flags & Node::kFunction)
      functions_.push_back({static_cast<FunctionNode*>(n), (n->flags & Node::kInTurn) != 0});
  }
  waiting_.resize(turns_.size());
  bool used[kMaxDevices] = {};
  int devices = 0;
  for (Node* n : order)
    if (!(n->flags & Node::kSink) && !std::exchange(used[n->device], true)) ++devices;
  several_devices_ = devices > 1;
  if (devices > 1 && !alone_) {  // Note [Shares]
    const int here = tls.share ? tls.share : get_num_threads();
    share_ = static_cast<uint8_t>(std::clamp(here / devices, 1, 255));
  } else {
    share_ = tls.share;
  }
  base_ = tls.counter;
  // room for the operations that create_graph records
  tls.counter += (order.size() + 1) << 12;
  std::lock_guard lock(mutex_);  // the first push may start a worker
  for (Root& r : roots) {
    Info& info = info_[r.node.get()];
    info.parts.push_back({0, r.slot, std::move(r.grad)});
    if (info.waits == 0) ready(r.node.get(), info, r.node->device), info.waits = -1;
  }
}

std::vector<Tensor> GraphTask::collect(Node* n, Info& info) {
  std::stable_sort(info.parts.begin(), info.parts.end(),
                   [](const Part& a, const Part& b) { return a.key < b.key; });
  std::vector<Tensor> in(n->slot_count);
  for (Part& p : info.parts)
    if (p.grad.defined())
      in[p.slot] =
          in[p.slot].defined() ? accumulate(std::move(in[p.slot]), p.grad) : std::move(p.grad);
  info.parts.clear();
  // What is kept arrives at the end, together with what other Functions bring to the slot.
  const bool kept = n->flags & Node::kReduce && n->slot_count > 1 && keeper();
  if (RAMET_UNLIKELY(capture::active())) note_hooks(n);
  for (uint32_t s = 0; s < in.size() && !kept; ++s)
    if (in[s].defined()) n->arrived(in[s], s);
  for (auto [slot, index] : info.captures) (*captured_)[size_t(index)] = in[slot];
  return in;
}

void GraphTask::failed(uint64_t rank) {
  const std::lock_guard lock(mutex_);
  if (rank < error_rank_) error_ = std::current_exception(), error_rank_ = rank;
}

// All members of a bucket.
std::vector<Tensor> GraphTask::reduce(
    ReduceBucket& bucket, const std::vector<std::pair<Node*, std::vector<Tensor>>>& in) {
  // What goes to other processes is told by who sends it.
  if (!observed_ || !(in[0].first->flags & Node::kReduce)) return bucket.reduce(in, *this);
  std::vector<Node*> members;
  for (const auto& [node, slots] : in) members.push_back(node);
  const detail::ObservedReduction told(&bucket, "reduce_add", members);
  return bucket.reduce(in, *this);
}

void GraphTask::process(const Ready& r, const std::vector<Member>& members,
                        std::vector<Delivery>& out) {
  if (r.bucket) {  // all members of a bucket: one reduction
    std::vector<std::pair<Node*, std::vector<Tensor>>> in;
    std::vector<uint64_t> ranks;
    for (const auto& [n, info] : members) {
      // A member whose hook fails, here or after the sum, takes no other parameter with it: what
      // fails does not depend on the plan of the buckets.
      try {
        in.emplace_back(n, collect(n, *info));
        ranks.push_back(info->rank);
      } catch (...) { failed(info->rank); }
    }
    if (in.empty()) return;
    std::vector<Tensor> sums = reduce(*r.bucket, in);
    for (size_t i = 0; i < in.size(); ++i) {
      try {
        Node* n = in[i].first;
        r.bucket->on_reduced(n, sums[i]);
        if (n->flags & Node::kSink) {
          in[i].second.clear();  // `sums` alone holds it: it need not be copied
          if (sums[i].defined()) run_node(n, &sums[i], nullptr);
          sums[i] = Tensor();  // the leaf alone has it
          r.bucket->on_accumulated(n);
        } else {
          if (observed_) tell_delivered(this, *n, &sums[i]);
          out.emplace_back(n->edges()[0], ranks[i], std::move(sums[i]));
        }
      } catch (...) { failed(ranks[i]); }
    }
    return;
  }
  Node* n = r.node;
  Info& info = info_.find(n)->second;
  std::vector<Tensor> in = collect(n, info), grads(n->edge_count);
  const bool any = std::ranges::any_of(in, [](const Tensor& t) { return t.defined(); });
  const bool capture_only =
      captured_ && ((n->flags & Node::kSink) ||
                    std::none_of(n->edges(), n->edges() + n->edge_count, [&](const RawEdge& e) {
                      return e.node && info_.find(e.node)->second.wanted;
                    }));
  if (any && !capture_only && info.wanted) {
    const bool of_replica =
        n->flags & Node::kFunction && static_cast<const FunctionNode*>(n)->of_replica();
    const ScopedValue<GraphTask*> keeper(keeps, of_replica ? this : keeps);
    const Place place{here, info.rank};
    const ScopedValue<const Place*> at(here, &place);
    run_node(n, in.data(), grads.data());
    if (!retain_) n->release_saved();
  }
  if (observed_) tell_delivered(this, *n, grads.data());
  for (int i = 0; i < n->edge_count; ++i)
    if (n->edges()[i].node) out.emplace_back(n->edges()[i], info.rank, std::move(grads[size_t(i)]));
}

void GraphTask::deliver(RawEdge e, uint64_t key, Tensor g, int lane) {
  // a source that no longer wants its gradient
  if (!e.node) return;
  Info& info = info_.find(e.node)->second;
  if (g.defined()) info.parts.push_back({key + 1, e.slot, std::move(g)});
  if (--info.waits == 0) ready(e.node, info, lane);
}

// Note [Hooks of leaves]
// A hook on what a leaf has accumulated may be an optimizer's step that drops the gradient, so that
// no backward holds all of them at a time, and it may look at other leaves. Where there is one, all
// leaves therefore take their gradients as soon as those are complete, before anything else on
// their device, and not at the end. The fast walk does not know when that is: operations on the
// leaf inherit kSpans.
void GraphTask::ready(Node* n, Info& info, int lane) {
  if (observed_) detail::tell_observers([&](GraphObserver& o) { o.on_node_ready(this, *n); });
  if (ReduceBucket* b = n->bucket(); b && groups_.count(b)) {
    Group& group = groups_[b];
    if (observed_ && n->flags & Node::kReduce)
      detail::tell_observers([&](GraphObserver& o) { o.on_slot_filled(b, *n); });
    group.members.emplace_back(n, &info);
    b->on_last_contribution(n, info.parts.size());
    // The thread that brings the last gradient of a bucket reduces it before anything else: that is
    // the overlap.
    if (--group.waits == 0) push_group(lane, b, group);
    return;
  }
  if (RAMET_UNLIKELY(n->flags & Node::kInTurn) && turns_[turn_] != n) {
    waiting_[static_cast<size_t>(std::ranges::find(turns_, n) - turns_.begin())] = true;
    return;
  }
  const bool at_once = leaves_at_once_ && n->flags & Node::kSink;
  push(n->device, {at_once ? Ready::kLeaves : Ready::kNodes, info.rank, n, nullptr});
}

void GraphTask::left(const Ready& r) {
  if (!r.node || !(r.node->flags & (Node::kInTurn | Node::kFunction))) return;
  if (r.node->flags & Node::kFunction)
    std::erase_if(functions_, [&r](const Function& f) { return f.node == r.node; });
  if (!(r.node->flags & Node::kInTurn)) return;
  if (++turn_ == turns_.size() || !waiting_[turn_]) return;
  Node* const n = turns_[turn_];
  push(n->device, {Ready::kNodes, info_.find(n)->second.rank, n, nullptr});
}

void GraphTask::push_group(int lane, ReduceBucket* b, Group& group) {
  // in their own order, not that of arrival: what follows is numbered from the first one's rank
  std::sort(group.members.begin(), group.members.end(),
            [](const Member& x, const Member& y) { return x.second->rank < y.second->rank; });
  push(lane, {Ready::kBuckets, 0, nullptr, b});
}

void GraphTask::push(int device, Ready r) {
  Lane& lane = lanes_[device];
  lane.heap.push_back(r);
  std::push_heap(lane.heap.begin(), lane.heap.end());
  if (device == home_) return changed_.notify_all();  // the caller serves its own device
  if (alone_) return;                                 // run() serves all of them
  if (lane.active) return;
  lane.active = true;
  ++active_;
  // Workers are never parked inside a backward: a lane is posted when it has work and leaves when
  // it has none.
  const uint64_t ticket = devices::post(Device::from_ordinal(device), [this, device] {
    try {
      ThreadLocalStateGuard state(state_);
      AutoGradMode mode(create_);
      const DeviceGuard here(Device::from_ordinal(device));
      walk(device);
    } catch (...) {  // no memory for what the walk itself needs: whoever waits for the lane hears
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

void GraphTask::walk(int device) {
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[device];
  ScopedValue<GraphTask*> outer(tls.task, this), walk(around, this), keeper(keeps, keeper_);
  ScopedValue<const Place*> place(here, place_);
  ScopedValue<uint8_t> share(tls.share, share_);
  const uint64_t counter = tls.counter;
  std::vector<Delivery> out;
  while (!lane.heap.empty()) {
    std::pop_heap(lane.heap.begin(), lane.heap.end());
    const Ready r = lane.heap.back();
    lane.heap.pop_back();
    std::vector<Member> members;
    if (r.bucket) members.swap(groups_.at(r.bucket).members);
    if (r.bucket && members.empty()) continue;  // taken by an earlier entry, after a failure
    lock.unlock();
    // Nodes recorded by this one are numbered from its rank: their order, hence the bits of a
    // second backward, does not depend on which device was quicker.
    const uint64_t rank = r.bucket ? members[0].second->rank : r.rank;
    tls.counter = base_ + (rank << 12);
    try {
      out.clear();
      process(r, members, out);
    } catch (...) {
      // A failed node delivers nothing, everything that does not depend on it still runs: which
      // errors occur, and hence which one is thrown in the end (the first in the order), does not
      // depend on timing either.
      failed(rank);
      lock.lock();
      left(r);
      continue;
    }
    lock.lock();
    left(r);
    for (auto& [e, key, g] : out) deliver(e, key, std::move(g), device);
  }
  out.clear();
  tls.counter = counter;
  if (device == home_) return;
  lane.active = false;
  --active_;
  changed_.notify_all();
}

bool GraphTask::serve_another() {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (device == home_ || lanes_[device].heap.empty()) continue;
    ++active_;  // walk() takes it back
    ThreadLocalStateGuard state(state_);
    AutoGradMode mode(create_);
    const DeviceGuard here(Device::from_ordinal(device));
    walk(device);
    return true;
  }
  return false;
}

void GraphTask::run() {
  for (;;) {
    walk(home_);
    if (alone_ && serve_another()) continue;
    std::unique_lock lock(mutex_);
    // Inside a task of a worker: others may wait for what its queue holds, so it goes on with that.
    while (nested_ && !posted_.empty()) {
      const uint64_t ticket = posted_.back();
      posted_.pop_back();
      lock.unlock();
      devices::wait(ticket);
      lock.lock();
    }
    changed_.wait(lock, [&] { return active_ == 0 || !lanes_[home_].heap.empty(); });
    if (active_ != 0 || !lanes_[home_].heap.empty()) continue;
    if (!error_) break;
    // Members that are complete in buckets that will never be: they do not depend on what failed.
    for (auto& [b, group] : groups_)
      if (!group.members.empty()) push_group(home_, b, group);
    if (lanes_[home_].heap.empty()) break;
  }
  for (auto& [bucket, _] : owned_) bucket->on_backward_ended();
  if (!error_) {
    try {
      send_kept();
    } catch (...) { failed(~uint64_t{0} - 1); }
  }
  give_back();  // buckets may go at the end
  for (const auto& f : std::exchange(at_end_, {})) {
    try {
      f(error_ != nullptr);
    } catch (...) { failed(~uint64_t{0} - 1); }
  }
  if (error_) std::rethrow_exception(error_);
  if (tells_) tells_->failed = false;
}

}  // namespace autograd
}  // namespace ramet
