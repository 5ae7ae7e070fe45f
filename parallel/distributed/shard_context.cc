#include <algorithm>
#include <exception>
#include <memory>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "parallel/distributed/shard_context_internal.h"
#include "runtime/capture.h"

namespace ramet::distributed::detail {

using autograd::GraphTask;
using Lock = std::lock_guard<std::recursive_mutex>;

namespace {

void erase(std::vector<ShardGroup*>& list, const ShardGroup* group) {
  list.erase(std::remove(list.begin(), list.end(), group), list.end());
}

// Nobody is about to read its members.
bool idle(const ShardGroup& group) { return group.uses == 0 && !group.held; }

}  // namespace

void ShardContext::adopt(std::shared_ptr<ShardContext> other) {
  if (other.get() == this) return;
  for (ShardGroup* g : other->groups_) {
    groups_.push_back(g);
    g->context = shared_from_this();
  }
  other->groups_.clear();
}

void ShardContext::forget(const ShardGroup* group) {
  for (auto* list : {&groups_, &sequence_, &last_sequence_, &history_, &gathers_, &reductions_})
    erase(*list, group);
  if (root_ == group) root_ = nullptr;
}

// ---- forward ------------------------------------------------------------------------------------

void ShardContext::enter(ShardGroup& group) {
  capture::refuse("fully_shard", "ranks meet in its forward and backward");
  const Lock lock(mutex);
  if (running_.empty()) sequence_.clear();
  running_.push_back({&group, std::uncaught_exceptions()});
  ++group.uses;
  group.bind();
  if (tls.grad_mode) {
    if (std::ranges::find(history_, &group) == history_.end()) group.first_use = ++uses_;
    erase(history_, &group);
    history_.push_back(&group);
  }
  try {
    group.launch();
    const size_t place = sequence_.size();
    sequence_.push_back(&group);
    if (group.options.prefetch && place + 1 < last_sequence_.size() &&
        last_sequence_[place] == &group)
      last_sequence_[place + 1]->launch();
    group.finish();
  } catch (...) {
    leave(/*failed=*/true);
    throw;
  }
}

bool ShardContext::reshards(const ShardGroup& group) const {
  return !tls.grad_mode || group.reshard_after_forward.value_or(&group != root_);
}

void ShardContext::leave(bool failed) {
  const Lock lock(mutex);
  const Entry entry = running_.back();
  running_.pop_back();
  failed = failed || std::uncaught_exceptions() > entry.exceptions;
  --entry.group->uses;
  entry.group->last_use = ++uses_;
  if (idle(*entry.group) && (failed || reshards(*entry.group))) entry.group->reshard();
  if (!running_.empty()) return;
  last_sequence_ = sequence_;
  // What was gathered ahead in vain.
  for (ShardGroup* g : groups_)
    if (idle(*g) && (failed || g->state() == ShardState::gathering)) g->reshard();
}

// ---- backward -----------------------------------------------------------------------------------

void ShardContext::begin(GraphTask& task) {
  if (task_ == &task) return;
  RAMET_CHECK(
      !task_, "fully_shard",
      "a second backward through this module while one runs: its groups would mix, expected "
      "one at a time");
  task_ = &task;
  reducing_ = false;
  reductions_.assign(history_.rbegin(), history_.rend());
  gathers_.clear();
  for (ShardGroup* g : reductions_)
    if (g->state() == ShardState::sharded) gathers_.push_back(g);
  next_gather_ = next_reduction_ = 0;
  reached_.clear();
  complete_.clear();
  in_flight_ = nullptr;
  task.at_end([self = shared_from_this()](bool failed) { self->end(failed); });
}

void ShardContext::begun(ShardGroup& group, GraphTask& task) {
  begin(task);
  if (!reducing_) {
    reducing_ = true;
    history_.clear();
  }
  reached_.insert(&group);
  if (std::ranges::find(reductions_, &group) == reductions_.end()) reductions_.push_back(&group);
}

void ShardContext::needed(ShardGroup& group) {
  begin(*tls.task);
  if (const ShardGroup::Member* m = group.changed())
    fail("fully_shard", "parameter '", m->name, "' was changed by ",
         m->shard.storage_impl()->last_writer(),
         " after the forward whose backward needs its values, which are gone");
  const auto at = std::find(gathers_.begin(), gathers_.end(), &group);
  if (at == gathers_.end()) {
    group.launch();
  } else {
    const auto end = static_cast<size_t>(at - gathers_.begin()) + 1;
    while (next_gather_ < end) gathers_[next_gather_++]->launch();
    if (group.options.prefetch && next_gather_ < gathers_.size())
      gathers_[next_gather_++]->launch();
    group.launch();  // it may have been needed, and given back, before
  }
  group.finish();
  advance();
}

void ShardContext::complete(ShardGroup& group) {
  complete_.insert(&group);
  if (idle(group)) group.reshard();
  advance();
}

void ShardContext::gather_used_after(const ShardGroup& group) {
  size_t end = next_gather_;
  for (size_t i = end; i < gathers_.size(); ++i)
    if (gathers_[i]->last_use > group.first_use) end = i + 1;
  while (next_gather_ < end) gathers_[next_gather_++]->launch();
}

// Reductions whose turn has come. One is under way while the next one's gradients are computed.
void ShardContext::advance() {
  if (!reducing_) return;
  for (; next_reduction_ < reductions_.size(); ++next_reduction_) {
    ShardGroup* g = reductions_[next_reduction_];
    if (reached_.count(g) && !complete_.count(g)) return;
    if (!g->sync || !g->reduces()) {
      g->collect();
      continue;
    }
    if (in_flight_) {
      gather_used_after(*in_flight_);
      in_flight_->finish_reduction();
    }
    in_flight_ = nullptr;
    g->launch_reduction();
    in_flight_ = g;
  }
}

void ShardContext::reduce_all(const std::vector<ShardGroup*>& reduced) const {
  std::vector<bool> present;
  for (const ShardGroup* g : reduced) g->add_presence(present);
  const auto n = static_cast<int64_t>(present.size());
  const Tensor flags = zeros({n}, TensorOptions(kBool));
  for (size_t i = 0; i < present.size(); ++i) flags.data_ptr<bool>()[i] = present[i];
  const ShardLanes& lanes = reduced[0]->lanes;
  const std::string name = reduced[0]->options.name + "/used parameters";
  lanes.reduce->all_reduce(flags, name).wait();
  if (lanes.outer) lanes.outer->all_reduce(flags, name).wait();
  for (size_t i = 0; i < present.size(); ++i) present[i] = flags.data_ptr<bool>()[i];
  for (ShardGroup* g : reduced) {
    g->finish_reduction();
    for (const ShardGroup::Unit& unit : g->units)
      if (unit.piece.defined()) unit.reducing.wait();
  }
  size_t next = 0;
  for (ShardGroup* g : reduced) g->deliver(present, next);
}

void ShardContext::end(bool failed) {
  const NoGradGuard off;
  const Lock lock(mutex);
  std::vector<ShardGroup*> reduced;
  std::exception_ptr error;
  try {
    if (!failed) {
      while (next_gather_ < gathers_.size()) gathers_[next_gather_++]->launch();
      advance();
      for (ShardGroup* g : reductions_)
        if (reducing_ && g->sync && g->reduces()) reduced.push_back(g);
      if (!reduced.empty()) reduce_all(reduced);
    }
  } catch (...) { error = std::current_exception(); }
  if (failed || error) {
    if (!groups_.empty())
      groups_[0]->lanes.abort(failed ? "a backward failed on this rank"
                                     : "a reduction failed on this rank");
    for (ShardGroup* g : groups_) g->drop_gradients();
    history_.clear();
  }
  for (ShardGroup* g : groups_)
    if (idle(*g)) g->reshard();
  task_ = nullptr;
  reducing_ = false;
  gathers_.clear();
  reductions_.clear();
  reached_.clear();
  complete_.clear();
  in_flight_ = nullptr;
  if (error) std::rethrow_exception(error);
}

}  // namespace ramet::distributed::detail
