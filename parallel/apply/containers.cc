#include "parallel/apply/containers.h"

#include <cstring>

#include "autograd/ops/reduce/reduce.h"

namespace ramet {
namespace nn {
namespace parallel {

void Extent::tensor(const Tensor& t, const std::string& path) {
  RAMET_CHECK(t.dim() > 0, "scatter", path, ": chunk expects at least a 1-dimensional tensor: got ",
              describe(t), "; Broadcast(x) gives it to every replica");
  const int64_t size = t.size(wrap_dim("scatter", dim_, t.dim()));
  if (!found_) {
    found_ = true;
    size_ = size;
    path_ = path;
    return;
  }
  RAMET_CHECK(size == size_, "scatter",
              "tensors of one call must have the same extent along dimension ", dim_, ": got ",
              size, " for ", path, " and ", size_, " for ", path_,
              "; Broadcast(x), NoScatter(x) and PerReplica(list) opt out");
}

void Extent::per_replica(size_t values, const std::string& path) {
  RAMET_CHECK(values > 0, "scatter", path, ": got a PerReplica without values");
  RAMET_CHECK(!replicas_ || replicas_ == values, "scatter",
              "PerReplica arguments must have the same length: got ", values, " for ", path,
              " and ", replicas_, " for ", replicas_path_);
  replicas_ = values;
  replicas_path_ = path;
}

namespace detail {

std::vector<Tensor> scatter_tensor(const Tensor& t, const ScatterPlan& plan) {
  if (!t.defined() || plan.sizes.empty()) return std::vector<Tensor>(plan.devices.size(), t);
  ramet::parallel::ScatterOptions options;
  options.split = ramet::parallel::Split::sizes(plan.sizes);
  options.dim = plan.dim;
  options.alias = plan.alias;
  return ramet::parallel::scatter(t, plan.devices, options);
}

std::vector<Tensor> broadcast_tensor(const Tensor& t, const ScatterPlan& plan) {
  if (!t.defined()) return std::vector<Tensor>(plan.devices.size());
  return ramet::parallel::broadcast(t, plan.devices);
}

namespace {
Tensor joined(const std::vector<Tensor>& parts, const GatherPlan& plan, const std::string& path) {
  size_t defined = 0;
  for (const Tensor& t : parts) defined += t.defined();
  RAMET_CHECK(defined == 0 || defined == parts.size(), "gather", path, ": ", parts.size() - defined,
              " of ", parts.size(), " replicas returned an undefined tensor, expected all or none");
  if (defined == 0) return {};
  if (plan.keep_scalars && parts.size() == 1 && parts[0].dim() == 0)
    return parts[0].to(plan.device);
  if (parts[0].dim() != 0 || plan.scalars == Scalars::stack) {
    try {
      return ramet::parallel::gather(parts, parts[0].dim() == 0 ? 0 : plan.dim, plan.device);
    } catch (const Error& e) { fail("gather", path, ": ", e.what()); }
  }
  for (const Tensor& t : parts)
    RAMET_CHECK(t.dim() == 0, "gather", path,
                ": got 0-dim tensors among others, expected all or none of them to be 0-dim");
  const Tensor all = ramet::parallel::detail::stack_scalars(parts, plan.device);
  if (plan.scalars == Scalars::mean || plan.sizes.size() != parts.size()) return all.mean();
  Tensor weights(TensorBase::empty({static_cast<int64_t>(parts.size())}, kDouble, Device(kCPU, 0)));
  double total = 0;
  for (size_t i = 0; i < parts.size(); ++i) total += static_cast<double>(plan.sizes[i]);
  for (size_t i = 0; i < parts.size(); ++i)
    static_cast<double*>(weights->data)[i] =
        total > 0 ? static_cast<double>(plan.sizes[i]) / total : 0;
  return (all * weights.to(all.device(), all.scalar_type())).sum();
}

}  // namespace

Tensor gather_tensors(const std::vector<Tensor>& parts, const GatherPlan& plan,
                      const std::string& path) {
  Tensor whole = joined(parts, plan, path);
  return plan.on_result && *plan.on_result ? (*plan.on_result)(whole) : whole;
}

std::string field_name(const char* names, size_t index) {
  for (; index > 0; --index) names = std::strchr(names, ',') + 1;
  while (*names == ' ') ++names;
  const char* end = std::strchr(names, ',');
  return end ? std::string(names, end) : std::string(names);
}

void check_keys(const std::string& path, size_t replica, size_t got, size_t expected) {
  RAMET_CHECK(got == expected, "gather", path,
              ": All dicts must have the same number of keys: replica ", replica, " has ", got,
              ", replica 0 has ", expected);
}

void missing_key(const std::string& path, size_t replica, const std::string& key) {
  fail("gather", path, key, ": replica ", replica, " has no such key, replica 0 has");
}

}  // namespace detail
}  // namespace parallel
}  // namespace nn
}  // namespace ramet
