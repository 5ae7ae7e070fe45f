#include "parallel/distributed/shard/shard_context_internal.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/graph/function.h"
#include "autograd/ops.h"
#include "parallel/distributed/model/leaves_internal.h"
#include "runtime/capture/capture.h"

using ramet::detail::tls;

namespace ramet::distributed::detail {

using autograd::GraphTask;
using Lock = std::lock_guard<std::recursive_mutex>;

namespace {

void erase(std::vector<ShardGroup*>& list, const ShardGroup* group) {
  list.erase(std::remove(list.begin(), list.end(), group), list.end());
}

// No forward and no unshard() needs the values of its members.
bool idle(const ShardGroup& group) { return group.uses == 0 && !group.held; }

bool contains(const std::vector<ShardGroup*>& list, const ShardGroup* group) {
  return std::ranges::find(list, group) != list.end();
}

}  // namespace

void ShardContext::adopt(std::shared_ptr<ShardContext> other) {
  if (other.get() == this) return;
  for (ShardGroup* g : other->groups_) {
    groups_.push_back(g);
    g->context = shared_from_this();
  }
  other->groups_.clear();
  is_last_backward = is_last_backward && other->is_last_backward;
}

void ShardContext::forget(const ShardGroup* group) {
  for (auto* list :
       {&groups_, &sequence_, &last_sequence_, &history_, &gathers_, &reductions_, &reduced_})
    erase(*list, group);
  for (ShardGroup* g : groups_)
    for (auto* list : {&g->forward_prefetch, &g->backward_prefetch}) erase(*list, group);
  std::erase_if(pending_, [group](const Pending& p) { return p.group == group; });
  if (root_ == group) root_ = nullptr;
}

// ---- forward ------------------------------------------------------------------------------------

void ShardContext::begin_forward(ShardGroup& group) {
  capture::refuse("fully_shard", "ranks meet in its forward and backward");
  autograd::note_meeting();  // even if it is gathered already
  const Lock lock(mutex);
  for (const Pending& p : pending_)
    RAMET_CHECK(p.group != &group || p.writes == group.writes(), "fully_shard",
                "parameters were changed, as by an optimizer's step, while gradients of a backward "
                "that was not the last one had not come: expected set_is_last_backward(true) "
                "before the last backward, or finalize_backward() after it");
  // A forward that a backward computes again is not part of the order: it needs this group alone,
  // and is differentiated at once.
  const bool again = task_ || tls.task;
  if (running_.empty() && !again) sequence_.clear();
  running_.push_back({&group, std::uncaught_exceptions()});
  ++group.uses;
  group.follow_requires_grad();
  if (tls.grad_mode && !task_) {
    if (!contains(history_, &group)) group.first_use = ++uses_;
    erase(history_, &group);
    history_.push_back(&group);
  }
  try {
    // This gather is not in the plan. If another device's lane may begin planned gathers
    // concurrently, those come first, on all ranks.
    if (task_ && task_->several_devices()) gather_until(gathers_.size());
    group.launch_gather();
    if (!again) {
      const size_t place = sequence_.size();
      sequence_.push_back(&group);
      if (!group.forward_prefetch.empty()) {
        for (ShardGroup* g : group.forward_prefetch) g->launch_gather();
      } else if (group.options.prefetch && place + 1 < last_sequence_.size() &&
                 last_sequence_[place] == &group) {
        last_sequence_[place + 1]->launch_gather();
      }
    }
    group.finish_gather();
  } catch (...) {
    end_forward(/*failed=*/true);
    throw;
  }
}

bool ShardContext::reshards(const ShardGroup& group) const {
  return !tls.grad_mode || group.reshard_after_forward.value_or(&group != root_);
}

void ShardContext::end_forward(bool failed) {
  const Lock lock(mutex);
  const Entry entry = running_.back();
  running_.pop_back();
  failed = failed || std::uncaught_exceptions() > entry.exceptions;
  --entry.group->uses;
  entry.group->last_use = ++uses_;
  if (idle(*entry.group) && (failed || reshards(*entry.group))) entry.group->reshard();
  if (!running_.empty() || task_) return;
  if (!tls.task) last_sequence_ = sequence_;
  // Frees what was gathered ahead in vain.
  for (ShardGroup* g : groups_)
    if (idle(*g) && (failed || g->state() == ShardState::gathering)) g->reshard();
}

// ---- backward -----------------------------------------------------------------------------------

void ShardContext::begin_backward(GraphTask& task) {
  if (is_running(&task)) return;
  RAMET_CHECK(!task_, "fully_shard",
              "a second backward through this module while one runs: its groups would mix, "
              "expected one at a time, or one inside the other");
  settle();
  task_ = &task;
  reducing_ = false;
  reductions_.assign(history_.rbegin(), history_.rend());
  plan_gathers();
  next_gather_ = next_reduction_ = 0;
  open_.clear();
  reduced_.clear();
  in_flight_ = nullptr;
  task.at_end([self = shared_from_this()](bool failed) { self->on_backward_ended(failed); });
}

void ShardContext::on_backward_begun(ShardGroup& group, GraphTask& task) {
  begin_backward(task);
  if (!reducing_) {
    reducing_ = true;
    if (is_last_backward) history_.clear();
  }
  if (is_past(group) && group.sync && group.reduces())
    fail_too_late("fully_shard", group.units[0].members[0].name);
  if (!contains(reductions_, &group)) reductions_.push_back(&group);
  ++open_[&group];
}

// Has this backward already passed the group's turn?
bool ShardContext::is_past(const ShardGroup& group) const {
  const auto begin = reductions_.begin(), end = begin + static_cast<ptrdiff_t>(next_reduction_);
  return std::find(begin, end, &group) != end;
}

void ShardContext::plan_gathers() {
  gathers_.clear();
  const auto plan = [this](ShardGroup* g) {
    if (g->state() == ShardState::sharded && g->unshard_in_backward && !contains(gathers_, g))
      gathers_.push_back(g);
  };
  for (ShardGroup* g : reductions_) {
    plan(g);
    for (ShardGroup* ahead : g->backward_prefetch)
      if (contains(reductions_, ahead)) plan(ahead);
  }
}

void ShardContext::gather_until(size_t end) {
  while (next_gather_ < end) gathers_[next_gather_++]->launch_gather();
}

void ShardContext::on_values_needed(ShardGroup& group) {
  begin_backward(*tls.task);
  if (const ShardGroup::Member* m = group.changed())
    fail("fully_shard", "parameter '", m->name, "' was changed by ",
         m->shard.storage_impl()->last_writer(),
         " after the forward whose backward needs its values, which are gone");
  RAMET_CHECK(group.unshard_in_backward || group.state() != ShardState::sharded, "fully_shard",
              "a backward needs the values of '", group.units[0].members[0].name,
              "' or of another parameter of its group, which set_unshard_in_backward(false) says "
              "that it does not");
  // The position after the group in the order; 0: it is not in it.
  const auto end_of = [this](const ShardGroup* g) {
    const auto at = std::ranges::find(gathers_, g);
    return at == gathers_.end() ? 0 : static_cast<size_t>(at - gathers_.begin()) + 1;
  };
  if (const size_t end = end_of(&group)) {
    gather_until(end);
    if (!group.backward_prefetch.empty())
      for (const ShardGroup* ahead : group.backward_prefetch) gather_until(end_of(ahead));
    else if (group.options.prefetch) gather_until(std::min(next_gather_ + 1, gathers_.size()));
  }
  group.launch_gather();  // it may have been needed and freed before
  group.finish_gather();
  advance_reductions();
}

void ShardContext::on_gradients_complete(ShardGroup& group) {
  --open_[&group];
  if (is_past(group))
    group.keep_unsynchronised();  // a backward inside this one, without synchronisation
  if (idle(group) && group.reshard_after_backward) group.reshard();
  advance_reductions();
}

void ShardContext::gather_used_after(const ShardGroup& group) {
  size_t end = next_gather_;
  for (size_t i = end; i < gathers_.size(); ++i)
    if (gathers_[i]->last_use > group.first_use) end = i + 1;
  gather_until(end);
}

// Does this backward, or one inside it, still have a gradient for the group to come?
bool ShardContext::may_get_more(const ShardGroup& group) {
  if (const auto at = open_.find(&group); at != open_.end() && at->second > 0) return true;
  return group.may_grow(*task_);
}

// Begins the reductions that are next. One is under way while the next one's gradients are
// computed.
void ShardContext::advance_reductions(bool at_end) {
  if (!reducing_) return;
  for (; next_reduction_ < reductions_.size(); ++next_reduction_) {
    ShardGroup* g = reductions_[next_reduction_];
    if (!at_end && may_get_more(*g)) return;
    if (!g->sync || !g->reduces()) {
      g->keep_unsynchronised();
      continue;
    }
    if (in_flight_) {
      gather_used_after(*in_flight_);
      in_flight_->finish_reduction();
    }
    in_flight_ = nullptr;
    g->launch_reduction();
    in_flight_ = g;
    reduced_.push_back(g);
  }
}

static CollectiveOptions used_parameters(const ShardGroup& g) {
  CollectiveOptions o(g.options.name + "/used parameters");
  o.timeout = g.lanes.gather->timeout();
  return o;
}

// Begins the exchange that finds out which parameters any rank had.
void ShardContext::exchange_presence() {
  std::vector<bool> present;
  for (ShardGroup* g : reduced_) {
    pending_.push_back({g, present.size(), g->writes()});
    g->add_presence(present);
  }
  flags_ = zeros({static_cast<int64_t>(present.size())}, TensorOptions(kBool));
  for (size_t i = 0; i < present.size(); ++i) flags_.data_ptr<bool>()[i] = present[i];
  const ShardGroup& first = *reduced_[0];
  used_ = first.lanes.reduce->all_reduce(flags_, used_parameters(first));
}

void ShardContext::settle() {
  const Lock lock(mutex);
  if (pending_.empty()) return;
  const NoGradGuard off;
  try {
    used_.wait();
    const ShardGroup& first = *pending_[0].group;
    if (first.lanes.outer) first.lanes.outer->all_reduce(flags_, used_parameters(first)).wait();
    for (const Pending& p : pending_) {
      p.group->finish_reduction();
      for (const ShardGroup::Unit& unit : p.group->units)
        if (unit.piece.defined()) unit.reducing.wait();
    }
    // Takes all results before any hook runs: a hook may be an optimizer's step with its
    // zero_grad(), which must not drop the others.
    std::vector<ShardGroup::Reduced> reduced;
    for (const Pending& p : std::exchange(pending_, {}))
      p.group->take_reduced(flags_.data_ptr<bool>() + p.first, reduced);
    std::exception_ptr failed;  // of a hook: the other shards get their gradients in any case
    for (auto& [leaf, gradient] : reduced) {
      try {
        leaf->run_hooks(gradient, 0);
        leaf->apply(&gradient, nullptr);
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
  } catch (...) {
    abort_groups("a reduction failed on this rank");
    throw;
  }
}

// Aborts, so that no rank waits for the others.
void ShardContext::abort_groups(const char* reason) {
  if (!groups_.empty()) groups_[0]->lanes.abort(reason);
  for (ShardGroup* g : groups_) g->drop_gradients();
  history_.clear();
  pending_.clear();
}

void ShardContext::on_backward_ended(bool failed) {
  const NoGradGuard off;
  const Lock lock(mutex);
  std::exception_ptr error;
  try {
    if (!failed) {
      gather_until(gathers_.size());
      advance_reductions(/*at_end=*/true);
      if (!reduced_.empty()) exchange_presence();
      if (is_last_backward) settle();
      // The same groups are gathered on all ranks when the next forward begins.
      for (ShardGroup* g : groups_)
        if (!g->reshard_after_backward) g->finish_gather();
    }
  } catch (...) { error = std::current_exception(); }
  if (failed || error)
    abort_groups(failed ? "a backward failed on this rank" : "a reduction failed on this rank");
  for (ShardGroup* g : groups_)
    if (idle(*g) && (failed || error || g->reshard_after_backward)) g->reshard();
  task_ = nullptr;
  reducing_ = false;
  gathers_.clear();
  reductions_.clear();
  reduced_.clear();
  open_.clear();
  in_flight_ = nullptr;
  if (error) std::rethrow_exception(error);
}

}  // namespace ramet::distributed::detail
