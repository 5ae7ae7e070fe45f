#include "nn/optim/lr_sequences.h"

#include <algorithm>

#include "nn/serialize/archive.h"

namespace ramet::optim {
namespace detail {

Optimizer& Schedules::optimizer_of(const char* op, const List& schedulers) {
  RAMET_CHECK(!schedulers.empty(), op, "expects at least one scheduler: got none");
  for (size_t i = 0; i < schedulers.size(); ++i)
    RAMET_CHECK(schedulers[i], op, "the scheduler at index ", i, ": got none");
  return schedulers[0]->optimizer();
}
Schedules::Schedules(const char* op, Optimizer& optimizer, List schedulers)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)) {
  optimizer_of(op, schedulers_);
  for (size_t i = 0; i < schedulers_.size(); ++i)
    RAMET_CHECK(
        &schedulers_[i]->optimizer() == &optimizer, op,
        "expects all schedulers to belong to the same optimizer: got another one's at index ", i);
}
std::function<void()> Schedules::undo() {
  std::vector<std::function<void()>> all{LRScheduler::undo()};
  for (const auto& s : schedulers_) all.push_back(s->undo());
  return [all = std::move(all)] {
    for (const auto& one : all) one();
  };
}
void Schedules::save(serialize::OutputArchive& archive) const {
  LRScheduler::save(archive);
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    serialize::OutputArchive one;
    schedulers_[i]->save(one);
    archive.write("schedule" + std::to_string(i), one);
  }
}
void Schedules::load(serialize::InputArchive& archive) {
  std::vector<serialize::InputArchive> all(schedulers_.size());
  for (size_t i = 0; i < all.size(); ++i) archive.read("schedule" + std::to_string(i), all[i]);
  const auto back = undo();
  try {
    for (size_t i = 0; i < all.size(); ++i) schedulers_[i]->load(all[i]);
    LRScheduler::load(archive);
  } catch (...) {
    back();
    throw;
  }
}
template <class F> std::vector<double> Schedules::rates_after(const F& steps) {
  const auto back = Schedules::undo();
  try {
    steps();
  } catch (...) {
    back();
    throw;
  }
  return get_current_lrs();
}

}  // namespace detail

SequentialLR::SequentialLR(Optimizer& optimizer, List schedulers, std::vector<int64_t> milestones)
    : Schedules("SequentialLR", optimizer, std::move(schedulers)),
      milestones_(std::move(milestones)) {
  RAMET_CHECK(milestones_.size() == schedulers_.size() - 1, "SequentialLR",
              "expects number of schedulers provided to be one more than the number of milestone "
              "points: got ",
              schedulers_.size(), " schedulers and ", milestones_.size(), " milestones");
  RAMET_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialLR",
              "milestones: got ", IntArrayRef(milestones_), ", expected an ascending order");
  begin(initial_lrs());
}
size_t SequentialLR::at(int64_t e) const {
  return static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), e) -
                             milestones_.begin());
}
std::vector<double> SequentialLR::get_lrs() {
  const int64_t e = step_count_;
  const size_t i = at(e);
  return rates_after([&] {
    if (i > 0 && milestones_[i - 1] == e) restart_one(i);
    else advance_one(i);
  });
}
void SequentialLR::begin(const std::vector<double>& rates) {
  begin_one(at(0), rates);
  step_count_ = 1;
}
void SequentialLR::restart() {
  restart_one(at(0));
  step_count_ = 1;
}

std::vector<double> ChainedScheduler::get_lrs() {
  return rates_after([&] {
    for (size_t i = 0; i < schedulers_.size(); ++i) advance_one(i);
  });
}
void ChainedScheduler::begin(const std::vector<double>& rates) {
  begin_one(0, rates);
  for (size_t i = 1; i < schedulers_.size(); ++i) begin_one(i, get_current_lrs());
  step_count_ = 1;
}
void ChainedScheduler::restart() {
  restart_one(0);
  for (size_t i = 1; i < schedulers_.size(); ++i) begin_one(i, get_current_lrs());
  step_count_ = 1;
}

}  // namespace ramet::optim
