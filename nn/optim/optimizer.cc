#include "nn/optim/optimizer.h"

#include <typeinfo>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "nn/module/class_name.h"
#include "nn/serialize/archive.h"
#include "runtime/base/demangle.h"

namespace ramet::optim {
namespace {

/// "ramet::optim::AdamOptions", also through the LibTorch compatibility headers: files hold the
/// name.
std::string class_of(const OptimizerOptions& options) {
  return ramet::detail::demangled(typeid(options).name());
}

}  // namespace

OptimizerParamState::~OptimizerParamState() = default;
std::unique_ptr<OptimizerParamState> OptimizerParamState::clone() const {
  fail("optim",
       "clone() has not been implemented for this OptimizerParamState. Subclass "
       "OptimizerCloneableParamState<T>");
}
void OptimizerParamState::serialize(serialize::InputArchive&) {
  fail("optim", "serialize() has not been implemented for this OptimizerParamState");
}
void OptimizerParamState::serialize(serialize::OutputArchive&) const {
  fail("optim", "serialize() has not been implemented for this OptimizerParamState");
}

OptimizerOptions::~OptimizerOptions() = default;
std::unique_ptr<OptimizerOptions> OptimizerOptions::clone() const {
  fail("optim",
       "clone() has not been implemented for this OptimizerOptions. Subclass "
       "OptimizerCloneableOptions<T>");
}
void OptimizerOptions::serialize(serialize::InputArchive&) {
  fail("optim", "serialize() has not been implemented for this OptimizerOptions");
}
void OptimizerOptions::serialize(serialize::OutputArchive&) const {
  fail("optim", "serialize() has not been implemented for this OptimizerOptions");
}
double OptimizerOptions::get_lr() const {
  fail("optim", "get_lr() has not been overridden in this OptimizerOptions");
}
void OptimizerOptions::set_lr(const double) {
  fail("optim", "set_lr() has not been overridden in this OptimizerOptions");
}
double* OptimizerOptions::momentum_place() { return nullptr; }
void OptimizerOptions::inherit(const OptimizerOptions&) {}
void OptimizerOptions::check() const {}

OptimizerOptions& OptimizerParamGroup::options() {
  RAMET_CHECK(options_, "optim", "this parameter group has no options");
  return *options_;
}
const OptimizerOptions& OptimizerParamGroup::options() const {
  RAMET_CHECK(options_, "optim", "this parameter group has no options");
  return *options_;
}

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& param_groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  RAMET_CHECK(defaults_, "optim", "an optimizer needs default options");
  defaults_->check();
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
}
Optimizer::Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))},
                std::move(defaults)) {}
Optimizer::~Optimizer() = default;

void Optimizer::add_param_group(const OptimizerParamGroup& param_group) {
  std::unordered_set<const TensorImpl*> seen;
  for (const OptimizerParamGroup& group : param_groups_)
    for (const Tensor& p : group.params()) seen.insert(p.impl());
  for (const Tensor& p : param_group.params()) {
    RAMET_CHECK(p.defined(), "optim", "can't optimize an undefined Tensor");
    RAMET_CHECK(p.is_leaf(), "optim", "can't optimize a non-leaf Tensor: got ", describe(p));
    RAMET_CHECK(
        seen.insert(p.impl()).second, "optim",
        "some parameters appear in more than one parameter group, or twice in one: ", describe(p));
  }
  OptimizerParamGroup group(param_group.params());
  group.set_options(param_group.has_options() ? param_group.options().clone() : defaults_->clone());
  if (param_group.has_options()) group.options().inherit(*defaults_);
  group.options().check();
  group.initial_lr() = param_group.initial_lr();
  param_groups_.push_back(std::move(group));
}

void Optimizer::step_unless(const Tensor& found_inf) {
  if (found_inf.item<float>() != 0) {
    ++progress_.skipped;
  } else {
    step();
    ++progress_.made;
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const OptimizerParamGroup& group : param_groups_)
    for (const Tensor& p : group.params()) autograd::zero_grad(p, set_to_none);
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  RAMET_CHECK(!param_groups_.empty(), "optim", "this optimizer has no parameter group");
  std::vector<Tensor>& first = param_groups_[0].params();
  first.insert(first.end(), parameters.begin(), parameters.end());
}
const std::vector<Tensor>& Optimizer::parameters() const noexcept {
  return param_groups_.at(0).params();
}
std::vector<Tensor>& Optimizer::parameters() noexcept { return param_groups_.at(0).params(); }
size_t Optimizer::size() const noexcept {
  size_t count = 0;
  for (const OptimizerParamGroup& group : param_groups_) count += group.params().size();
  return count;
}

// ---- saving -------------------------------------------------------------------------------------

std::unique_ptr<OptimizerParamState> Optimizer::new_state() const {
  fail("optim", "load() needs new_state(), which this optimizer does not override");
}

void Optimizer::save(serialize::OutputArchive& archive) const {
  settle();
  archive.write("options", IValue(class_of(*defaults_)));
  archive.write("groups", IValue(static_cast<int64_t>(param_groups_.size())));
  int64_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::OutputArchive group;
    group.write("params", IValue(static_cast<int64_t>(param_groups_[g].params().size())));
    serialize::OutputArchive options;
    param_groups_[g].options().serialize(options);
    group.write("options", options);
    archive.write("group" + std::to_string(g), group);
    for (const Tensor& p : param_groups_[g].params()) {
      const auto found = state_.find(p.impl());
      if (found != state_.end()) {
        serialize::OutputArchive state;
        found->second->serialize(state);
        archive.write("state" + std::to_string(number), state);
      }
      ++number;
    }
  }
}

void Optimizer::check_state(const Tensor&, OptimizerParamState&) const {}

void Optimizer::load(serialize::InputArchive& archive) {
  load(archive, [this] { return new_state(); });
}
void Optimizer::load(serialize::InputArchive& archive,
                     const std::function<std::unique_ptr<OptimizerParamState>()>& make) {
  settle();
  IValue count, options_class;
  // Older archives do not hold it.
  if (archive.try_read("options", options_class)) {
    const std::string expected = class_of(*defaults_);
    RAMET_CHECK(options_class.toStringRef() == expected, "optim",
                "loaded state dict is another optimizer's: got ",
                nn::detail::with_root_namespace(options_class.toStringRef()), ", expected ",
                nn::detail::with_root_namespace(expected));
  }
  archive.read("groups", count);
  RAMET_CHECK(count.toInt() == static_cast<int64_t>(param_groups_.size()), "optim",
              "loaded state dict has a different number of parameter groups: got ", count.toInt(),
              ", expected ", param_groups_.size());
  // Everything is read before anything is changed.
  std::vector<std::unique_ptr<OptimizerOptions>> options;
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>> states;
  int64_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::InputArchive group, nested;
    archive.read("group" + std::to_string(g), group);
    IValue params;
    group.read("params", params);
    const size_t expected = param_groups_[g].params().size();
    RAMET_CHECK(params.toInt() == static_cast<int64_t>(expected), "optim",
                "loaded state dict contains a parameter group that doesn't match the size of the "
                "optimizer's group ",
                g, ": got ", params.toInt(), ", expected ", expected);
    group.read("options", nested);
    options.push_back(param_groups_[g].options().clone());
    options.back()->serialize(nested);
    for (const Tensor& p : param_groups_[g].params()) {
      serialize::InputArchive entry;
      if (archive.try_read("state" + std::to_string(number++), entry)) {
        std::unique_ptr<OptimizerParamState> state = make();
        state->serialize(entry);
        check_state(p, *state);
        states[p.impl()] = std::move(state);
      }
    }
  }
  for (size_t g = 0; g < param_groups_.size(); ++g)
    param_groups_[g].set_options(std::move(options[g]));
  state_ = std::move(states);
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace ramet::optim
