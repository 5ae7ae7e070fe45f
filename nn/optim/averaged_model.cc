#include "nn/optim/averaged_model.h"

#include <ostream>

#include "autograd/ops.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/class_name.h"
#include "nn/optim/masters_internal.h"
#include "nn/serialize/archive.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {
namespace {

void check_decay(double decay) {
  RAMET_CHECK(decay >= 0 && decay <= 1, "AveragedModel", "Invalid decay value ", decay,
              " provided. Please provide a value in [0,1] range.");
}

/// Moves `averaged` towards `current` by the share `weight`. Numbers that are not floating point
/// are rounded towards 0, and a bool becomes the current one.
void move(const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, double weight) {
  for (size_t i = 0; i < averaged.size(); ++i) {
    const Tensor &a = averaged[i], &c = current[i];
    if (a.is_floating_point()) a.lerp_(c, weight);
    else if (a.scalar_type() == kBool) a.copy_(c);
    else a.copy_(a.to(kDouble).lerp(c.to(kDouble), weight));
  }
}

void append(std::vector<Tensor>& all, const std::vector<Tensor>& more) {
  for (const Tensor& t : more) all.push_back(t.detach());
}

void check_pairs(const char* what, const std::vector<Tensor>& averaged,
                 const std::vector<Tensor>& current) {
  RAMET_CHECK(averaged.size() == current.size(), "AveragedModel", "the model's ", what, ": got ",
              current.size(), ", expected ", averaged.size());
  for (size_t i = 0; i < averaged.size(); ++i)
    RAMET_CHECK(same_sizes(averaged[i], current[i]), "AveragedModel", "the model's ", what,
                " number ", i, ": got ", describe(current[i]), ", expected the sizes of ",
                describe(averaged[i]));
}

}  // namespace

AvgFn get_ema_avg_fn(double decay) {
  check_decay(decay);
  return [decay](const Tensor& averaged, const Tensor& current, int64_t) {
    return averaged * decay + current * (1 - decay);
  };
}
MultiAvgFn get_ema_multi_avg_fn(double decay) {
  check_decay(decay);
  return [decay](const std::vector<Tensor>& averaged, const std::vector<Tensor>& current, int64_t) {
    move(averaged, current, 1 - decay);
  };
}
AvgFn get_swa_avg_fn() {
  return [](const Tensor& averaged, const Tensor& current, int64_t num_averaged) {
    return averaged + (current - averaged) / (num_averaged + 1);
  };
}
MultiAvgFn get_swa_multi_avg_fn() {
  return [](const std::vector<Tensor>& averaged, const std::vector<Tensor>& current,
            int64_t num_averaged) {
    move(averaged, current, 1 / (static_cast<double>(num_averaged) + 1));
  };
}

namespace detail {

AveragedModelBase::AveragedModelBase(AveragedModelOptions options) : options_(std::move(options)) {
  RAMET_CHECK(!options_.avg_fn() || !options_.multi_avg_fn(), "AveragedModel",
              "Only one of avg_fn and multi_avg_fn should be provided");
  n_averaged = register_buffer("n_averaged", zeros({}, kLong));
}
std::shared_ptr<nn::Module> AveragedModelBase::copy_of(const nn::Module& model) const {
  return model.clone(options_.device());
}
void AveragedModelBase::pretty_print(std::ostream& stream) const {
  stream << nn::detail::qualified("optim::AveragedModel");
}

void AveragedModelBase::save(serialize::OutputArchive& archive) const {
  nn::Module::save(archive);
  for (size_t i = 0; i < masters_.size(); ++i)
    if (masters_[i].defined())
      archive.write("master" + std::to_string(i), masters_[i], /*is_buffer=*/true);
}
void AveragedModelBase::load(serialize::InputArchive& archive) {
  const nn::Module& own = averaged();
  std::vector<Tensor> all = own.parameters();
  append(all, own.buffers());
  std::vector<Tensor> masters(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Tensor master;
    if (!is_narrow(all[i].scalar_type()) ||
        !archive.try_read("master" + std::to_string(i), master, /*is_buffer=*/true))
      continue;
    RAMET_CHECK(same_sizes(master, all[i]), "AveragedModel", "loaded master", i, ": got ",
                describe(master), ", expected the sizes of ", describe(all[i]));
    masters[i] = master.to(all[i].device(), kFloat);
  }
  nn::Module::load(archive);
  masters_ = std::move(masters);
}

void AveragedModelBase::update_parameters(const nn::Module& model) {
  capture::refuse("AveragedModel", "the first update copies, later ones average");
  const NoGradGuard off;
  const nn::Module& own = averaged();
  std::vector<Tensor> mine = own.parameters(), other = model.parameters();
  check_pairs("parameters", mine, other);
  check_pairs("buffers", own.buffers(), model.buffers());
  std::vector<Tensor> averages, values, copies, sources;
  append(averages, mine), append(values, other);
  append(options_.use_buffers() ? averages : copies, own.buffers());
  append(options_.use_buffers() ? values : sources, model.buffers());
  const std::vector<Tensor> rounded = averages;
  masters_.resize(averages.size());
  for (size_t i = 0; i < values.size(); ++i) {
    averages[i] = widened(averages[i], masters_[i]);
    values[i] = values[i].to(averages[i].device(), averages[i].scalar_type());
  }

  const int64_t n = n_averaged.item<int64_t>();
  if (n == 0) {
    for (size_t i = 0; i < values.size(); ++i) averages[i].copy_(values[i]);
  } else if (options_.avg_fn()) {
    for (size_t i = 0; i < values.size(); ++i)
      averages[i].copy_(options_.avg_fn()(averages[i], values[i], n));
  } else {
    const MultiAvgFn average =
        options_.multi_avg_fn() ? options_.multi_avg_fn() : get_swa_multi_avg_fn();
    std::vector<bool> done(values.size());
    for (size_t first = 0; first < values.size(); ++first) {
      std::vector<Tensor> a, v;  // of one device and dtype
      for (size_t i = first; i < values.size(); ++i)
        if (!done[i] && averages[i]->key() == averages[first]->key())
          done[i] = true, a.push_back(averages[i]), v.push_back(values[i]);
      if (!a.empty()) average(a, v, n);
    }
  }
  for (size_t i = 0; i < rounded.size(); ++i) {
    if (!is_narrow(rounded[i].scalar_type())) continue;
    rounded[i].copy_(averages[i]);
    masters_[i] = averages[i];
  }
  for (size_t i = 0; i < copies.size(); ++i) copies[i].copy_(sources[i]);
  n_averaged.add_(1);
}

BatchNormAverages::BatchNormAverages(nn::Module& module) {
  for (const std::shared_ptr<nn::Module>& m : module.modules()) {
    modes_.emplace_back(m, m->is_training());
    if (auto* norm = dynamic_cast<nn::detail::BatchNormState*>(m.get())) {
      norm->reset_running_stats();
      momenta_.emplace_back(&norm->options.momentum(), norm->options.momentum());
    }
  }
  if (momenta_.empty()) return;
  module.train();
  for (auto& [momentum, before] : momenta_) *momentum = std::nullopt;
}
BatchNormAverages::~BatchNormAverages() {
  for (auto& [momentum, before] : momenta_) *momentum = before;
  if (momenta_.empty()) return;
  for (auto& [module, mode] : modes_) module->train(mode);  // children after their parents
}

}  // namespace detail
}  // namespace ramet::optim
