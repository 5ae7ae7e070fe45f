#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "parallel/distributed/gradient_reducer_internal.h"

namespace ramet::distributed::detail {

using autograd::AccumulateGrad;
using parallel::ReduceAdd;

namespace {
std::map<std::string, std::vector<int64_t>> sizes_of(const nn::Module& module) {
  std::map<std::string, std::vector<int64_t>> out;
  for (const auto& p : module.named_parameters()) out[p.key()] = p.value().sizes().vec();
  return out;
}
}  // namespace

GradientReducer::GradientReducer(std::shared_ptr<ProcessGroup> group, const DdpOptions& options,
                                 const nn::Module& module)
    : group_(std::move(group)),
      options_(options),
      stages_(group_, options.name, options.average, options.order, sizes_of(module)) {}

void GradientReducer::register_stage(const std::shared_ptr<CommStage>& stage) {
  {
    const std::lock_guard lock(mutex_);
    RAMET_CHECK(!task_, "register_comm_stage", "a backward runs, expected a call between steps");
  }
  stages_.add(stage);
}

void GradientReducer::set_sync(bool on) {
  const std::lock_guard lock(mutex_);
  sync_ = on;
}
bool GradientReducer::sync() const {
  const std::lock_guard lock(mutex_);
  return sync_;
}
void GradientReducer::set_rows(int64_t rows) {
  const std::lock_guard lock(mutex_);
  rows_ = rows;
}
std::vector<std::string> GradientReducer::unused() const {
  const std::lock_guard lock(mutex_);
  return unused_;
}

void GradientReducer::backward_begins(autograd::GraphTask& task) {
  const std::lock_guard lock(mutex_);
  if (task_ == &task) return;
  RAMET_CHECK(!task_, "ddp",
              "a second backward through this module while one runs: its buckets "
              "would mix, expected one at a time");
  task_ = &task;
  syncing_ = sync_;
  next_ = 0;
  buckets_.clear();
  for (auto& sources : set_->bucket_sources()) {
    buckets_.emplace_back();
    for (auto& s : sources) {
      // Frozen parameters take no part while they are.
      AccumulateGrad* leaf =
          s.tensor.requires_grad() ? autograd::grad_accumulator(s.tensor.impl()) : nullptr;
      if (leaf) buckets_.back().members.push_back({s.name, s.tensor, leaf, false, {}, {}});
    }
  }
  task.at_end([this](bool failed) { end(failed); });
}

void GradientReducer::bucket_ready(size_t index, const std::vector<ReduceAdd*>& defined,
                                   bool settled) {
  const NoGradGuard off;
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(index < buckets_.size(), "ddp", "bucket ", index, " of ", buckets_.size(),
              ": the module changed in the middle of a step");
  Bucket& b = buckets_[index];
  b.ready = true;
  b.settled = settled;
  for (const ReduceAdd* node : defined)
    for (Member& m : b.members)
      if (m.leaf == node->leaf()) {
        m.reached = true;
        if (!syncing_) local_.insert(m.leaf);
      }
  if (!syncing_) return;
  if (!b.settled) set_aside(b, /*arrived=*/false);
  while (next_ < buckets_.size() && launch_settled(buckets_[next_], next_)) ++next_;
}

// A gradient that all ranks share already must not be reduced again: the new one comes alone.
void GradientReducer::set_aside(Bucket& b, bool arrived) const {
  for (Member& m : b.members) {
    const std::lock_guard lock(m.leaf->mutex);
    if (!(arrived && m.reached) && m.leaf->grad.defined() && !local_.count(m.leaf) &&
        !m.before.defined())
      m.before = std::exchange(m.leaf->grad, Tensor());
  }
}

bool GradientReducer::launch_settled(Bucket& b, size_t index) {
  if (!b.ready || !b.settled) return false;
  // Members that this backward did not reach must be free too.
  for (const Member& m : b.members) {
    const std::lock_guard lock(m.leaf->mutex);
    if (m.leaf->extra || m.leaf->grad.defined() || !m.leaf->where.defined()) return false;
    if (!m.reached && !m.leaf->where.unique()) return false;  // somebody keeps a gradient of before
  }
  for (Member& m : b.members) m.sent = m.leaf->where.shallow();
  launch(b, index, /*fresh=*/true);
  return true;
}

// After the leaves have what this rank can give them.
void GradientReducer::launch_last(Bucket& b, size_t index) {
  set_aside(b, /*arrived=*/true);
  for (Member& m : b.members) {
    m.reached = m.leaf->grad.defined();
    if (m.reached) m.sent = m.leaf->grad;
    else
      m.sent = m.leaf->where.defined() && m.leaf->where.unique() ? m.leaf->where.shallow()
                                                                 : empty_like(m.source.detach());
    if (m.sent->node) m.sent = m.sent.detach();
  }
  launch(b, index, /*fresh=*/false);
}

void GradientReducer::launch(Bucket& b, size_t index, bool fresh) {
  b.report = std::make_shared<MemberReport>();
  if (b.members.empty()) return;
  CollectiveOptions o;
  o.name = options_.name + "/bucket " + std::to_string(index) + " [" + b.members.front().name +
           (b.members.size() > 1 ? " .. " + b.members.back().name : "") + "]";
  o.op = options_.average == Average::mean ? ReduceOp::average : ReduceOp::sum;
  o.order = options_.order;
  o.undefined_on_failure = fresh;
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  std::vector<bool> present;
  for (Member& m : b.members) {
    if (m.reached && weighs()) m.sent.mul_(static_cast<double>(rows_));
    tensors.push_back(m.sent);
    names.push_back(m.name);
    present.push_back(m.reached);
  }
  b.work = stages_.all_reduce(std::move(tensors), names, o, present, static_cast<double>(rows_),
                              b.report);
  b.launched = true;  // there is something to wait for
}

// The reduced gradients become the leaves'.
void GradientReducer::finish(Bucket& b, std::vector<std::string>& unused) {
  double rows = 0;
  for (double n : b.report->notes) rows += n;
  for (size_t i = 0; i < b.members.size(); ++i) {
    Member& m = b.members[i];
    local_.erase(m.leaf);
    const std::lock_guard lock(m.leaf->mutex);
    if (b.report->present[i]) {
      if (weighs() && rows > 0) m.sent.div_(rows);
      m.leaf->grad = std::move(m.sent);
      if (m.before.defined()) m.leaf->grad = m.before.add_(m.leaf->grad);
    } else {
      unused.push_back(m.name);
      if (m.before.defined()) m.leaf->grad = std::move(m.before);
    }
    m.sent = Tensor();
    m.before = Tensor();
  }
}

// What a failed bucket held is neither this rank's gradient nor the sum: undefined, or as it was.
void GradientReducer::take_back(Bucket& b) {
  for (Member& m : b.members) {
    const std::lock_guard lock(m.leaf->mutex);
    m.leaf->grad = std::exchange(m.before, Tensor());
    m.sent = Tensor();
    local_.erase(m.leaf);
  }
}

void GradientReducer::end(bool failed) {
  const NoGradGuard off;
  const std::lock_guard lock(mutex_);
  std::vector<Bucket> buckets = std::move(buckets_);
  buckets_.clear();
  task_ = nullptr;
  if (!syncing_) return;
  std::exception_ptr error;
  if (failed) {
    stages_.abort("a backward failed on this rank");
  } else {
    try {
      for (; next_ < buckets.size(); ++next_) launch_last(buckets[next_], next_);
    } catch (...) {
      error = std::current_exception();
      stages_.abort("a reduction failed on this rank");  // others wait for it
    }
  }
  std::vector<std::string> unused;
  for (Bucket& b : buckets) {
    if (b.launched) {
      try {
        b.work.wait();
        if (!failed) {
          finish(b, unused);
          continue;
        }
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (!b.members.empty()) take_back(b);
  }
  unused_ = std::move(unused);
  if (!failed) stages_.step_done(error != nullptr);
  if (error && !failed) std::rethrow_exception(error);
}

}  // namespace ramet::distributed::detail
