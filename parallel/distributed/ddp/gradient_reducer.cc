#include "parallel/distributed/ddp/gradient_reducer_internal.h"

#include <algorithm>

#include "parallel/distributed/group/group_state_internal.h"

namespace ramet::distributed::detail {

// The hook of one leaf. The engine calls it as soon as the leaf has its gradient. The plan decides
// on the leaf's bucket.
struct GradientReducer::Hook final : autograd::LeafBucket {
  GradientReducer& reducer;
  const size_t leaf;
  Hook(GradientReducer& r, size_t i) : reducer(r), leaf(i) {}
  void on_backward_begun(autograd::GraphTask& task) override {
    reducer.on_leaf_in_graph(leaf, task);
  }
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask&) override {
    reducer.on_gradient_ready(leaf, in[0].second[0]);
    return {in[0].second[0]};
  }
  void on_last_contribution(autograd::Node*, size_t parts) override {
    reducer.on_last_contribution(leaf, parts);
  }
  void on_accumulated(autograd::AccumulateGrad*) override { reducer.on_accumulated(leaf); }
  bool wants_unrounded() const override { return reducer.adds_unrounded(); }
  void on_unrounded_sum(const Tensor& sum, const Tensor& rounded) override {
    reducer.on_unrounded_sum(leaf, sum, rounded);
  }
};

namespace {

std::map<std::string, std::vector<int64_t>> sizes_of(const std::vector<NamedLeaf>& leaves) {
  std::map<std::string, std::vector<int64_t>> out;
  for (const NamedLeaf& l : leaves) out[l.names[0]] = l.tensor.sizes().vec();
  return out;
}
}  // namespace

GradientReducer::GradientReducer(std::shared_ptr<ProcessGroup> group, const DdpOptions& options,
                                 const std::vector<NamedLeaf>& leaves)
    : group_(std::move(group)),
      number_(next_number(*group_, "reducers")),
      options_(with_number(options, number_)),
      stages_(group_, options_.name, options.average, options.order, sizes_of(leaves)) {
  if (group_->size() > 1) key_ = "reducer/" + std::to_string(number_) + "/frozen/";
}

GradientReducer::~GradientReducer() {
  for (size_t u = 0; u < units_.size(); ++u) remove(u);
}

size_t GradientReducer::add(const std::vector<NamedLeaf>& leaves,
                            const std::weak_ptr<nn::Module>& owner) {
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!task_, "ddp", "a module is added in the middle of a backward");
  units_.emplace_back().owner = owner;
  set_leaves(units_.size() - 1, leaves);
  return units_.size() - 1;
}

void GradientReducer::update(size_t unit, const std::function<std::vector<NamedLeaf>()>& now) {
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!task_, "ddp", "a module has changed in the middle of a backward");
  const auto hook = [&](bool on) {
    for (const auto& leaf : leaves_)
      if (leaf && leaf->unit == unit)
        autograd::set_reduce_bucket(*leaf->sink, on ? leaf->hook.get() : nullptr);
  };
  hook(false);
  try {
    const std::vector<NamedLeaf> leaves = now();
    set_leaves(unit, leaves);
    stages_.set_parameters(sizes_of(leaves));
  } catch (...) {
    hook(true);
    throw;
  }
}

void GradientReducer::set_leaves(size_t unit, const std::vector<NamedLeaf>& leaves) {
  std::map<const autograd::Node*, size_t> before;
  for (size_t i = 0; i < leaves_.size(); ++i)
    if (leaves_[i] && leaves_[i]->unit == unit) before[leaves_[i]->sink] = i;
  for (const NamedLeaf& l : leaves) {
    auto* const sink = autograd::grad_accumulator(l.tensor.impl());
    const auto free = std::ranges::find_if(leaves_, [](const auto& l) { return !l; });
    const auto [at, fresh] = before.try_emplace(sink, static_cast<size_t>(free - leaves_.begin()));
    if (fresh) {
      if (free == leaves_.end()) leaves_.emplace_back();
      auto leaf = std::make_unique<Leaf>();
      leaf->sink = sink;
      leaf->sink->mark = anything;  // discards the mark that another reducer may have left
      leaf->node = autograd::NodePtr(sink);
      leaf->tensor = l.tensor;
      leaf->unit = unit;
      leaf->hook = std::make_unique<Hook>(*this, at->second);
      leaves_[at->second] = std::move(leaf);
    }
    Leaf& leaf = *leaves_[at->second];
    // Units of a shared reducer may use one name for different parameters.
    leaf.name = (unit ? std::to_string(unit) + "/" : std::string()) + l.names[0];
    autograd::set_reduce_bucket(*leaf.sink, leaf.hook.get());
    before.erase(at);
  }
  for (const auto& [_, gone] : before) leaves_[gone].reset();
  // The first plan: the last parameter first, as gradients come.
  order_.clear();
  for (size_t i = leaves_.size(); i-- > 0;)
    if (leaves_[i]) order_.push_back(i);
  agreed_ = false;
  make_plan();
  publish_trainable();
}

void GradientReducer::remove(size_t unit) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(units_[unit].removed, true)) return;
  units_[unit].on_failure = nullptr;
  std::erase_if(hooks_, [unit](const UnitHook& h) { return h.unit == unit; });
  // Not in a backward: the other ranks wait for its gradients, and the engine still calls its
  // leaves' hooks.
  if (!task_) drop_removed();
}

void GradientReducer::drop_removed() {
  bool any = false;
  for (auto& leaf : leaves_)
    if (leaf && units_[leaf->unit].removed) {
      autograd::set_reduce_bucket(*leaf->sink, nullptr);
      leaf.reset();
      any = true;
    }
  if (!any) return;
  std::erase_if(order_, [this](size_t i) { return !leaves_[i]; });
  make_plan();
}

void GradientReducer::register_stage(const std::shared_ptr<CommStage>& stage) {
  {
    const std::lock_guard lock(mutex_);
    RAMET_CHECK(!task_, "register_comm_stage", "a backward runs, expected a call between steps");
  }
  RAMET_CHECK(options_.division == Division::post, "register_comm_stage",
              "division before the sum: expected Division::post with stages");
  stages_.add(stage);
}

void GradientReducer::set_sync(size_t unit, bool on) {
  const std::lock_guard lock(mutex_);
  units_[unit].sync = on;
}
bool GradientReducer::sync(size_t unit) const {
  const std::lock_guard lock(mutex_);
  return units_[unit].sync;
}
void GradientReducer::begin_forward(size_t unit) {
  const std::lock_guard lock(mutex_);
  units_[unit].sync_of_forward = units_[unit].sync;
  publish_trainable();
}
std::vector<std::string> GradientReducer::unused() const {
  const std::lock_guard lock(mutex_);
  return unused_;
}
void GradientReducer::on_failure(size_t unit, std::function<void(const std::string&)> f) {
  const std::lock_guard lock(mutex_);
  units_[unit].on_failure = std::move(f);
}
void GradientReducer::abort(const std::string& why) {
  stages_.abort(why);
  for (const Unit& u : units_)
    if (u.on_failure) u.on_failure(why);
}

}  // namespace ramet::distributed::detail
