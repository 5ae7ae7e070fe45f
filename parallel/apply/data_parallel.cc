#include "parallel/apply/data_parallel.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "autograd/grad_mode.h"
#include "parallel/replicas/replica_set_internal.h"
#include "runtime/base/logging.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace nn {
namespace parallel {

using ramet::parallel::Split;

std::vector<Device> default_devices() {
  std::vector<Device> out;
  for (int i = 0; i < cuda::device_count(); ++i)
    out.emplace_back(kCUDA, static_cast<DeviceIndex>(i));
  if (!out.empty()) return out;
  for (int i = 0; i < std::min(cpu_device_count(), get_num_threads()); ++i)
    out.emplace_back(kCPU, static_cast<DeviceIndex>(i));
  return out;
}

std::optional<std::string> imbalance_warning(const std::vector<DeviceCapacity>& devices) {
  auto unequal = [&](int64_t DeviceCapacity::*what) -> std::optional<std::string> {
    if (devices.empty()) return std::nullopt;
    const DeviceCapacity *least = &devices[0], *most = &devices[0];
    for (const DeviceCapacity& d : devices) {
      if (d.*what < least->*what) least = &d;
      if (d.*what > most->*what) most = &d;
    }
    if (static_cast<double>(least->*what) >= 0.75 * static_cast<double>(most->*what))
      return std::nullopt;
    return "There is an imbalance between your GPUs. You may want to exclude GPU " +
           std::to_string(least->index) +
           " which has less than 75% of the memory or cores of GPU " + std::to_string(most->index) +
           ". You can do so by setting the device_ids argument to DataParallel, or by setting the "
           "CUDA_VISIBLE_DEVICES environment variable.";
  };
  if (auto text = unequal(&DeviceCapacity::memory)) return text;
  return unequal(&DeviceCapacity::cores);
}

namespace detail {
namespace {

// The first of a module's parameters and buffers.
const Tensor* first_tensor(const Module& m) {
  for (const auto* registry : {&m.own_parameters(), &m.own_buffers()})
    for (const auto& item : *registry)
      if (item.value().defined()) return &item.value();
  for (const auto& child : m.own_children())
    if (child.value())
      if (const Tensor* t = first_tensor(*child.value())) return t;
  return nullptr;
}

void warn_of_imbalance(const std::vector<Device>& devices) {
  std::vector<DeviceCapacity> cards;
  for (Device d : devices) {
    if (!d.is_cuda()) continue;
    const gpu::Capacity c = gpu::library()->capacity(d.index());
    cards.push_back({d.index(), static_cast<int64_t>(c.memory), c.multiprocessors});
  }
  if (const auto text = imbalance_warning(cards)) log(LogLevel::Warning, *text);
}

}  // namespace

DataParallelBase::DataParallelBase(std::shared_ptr<Module> source, DataParallelOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  RAMET_CHECK(source_, "DataParallel", "module: got an empty pointer");
  const std::vector<Device> asked = options_.devices ? *options_.devices : default_devices();
  for (Device d : asked) {
    RAMET_CHECK(!d.is_cuda() || cuda::device_count() > 0, "DataParallel",
                "Expected at least one CUDA device to be available: ",
                gpu::library() ? gpu::library()->why_none()
                               : "this program is linked without CUDA support");
    devices_.push_back(resolve(d));
  }
  warn_of_imbalance(devices_);
  if (options_.output_device) output_ = resolve(*options_.output_device);
  else if (!devices_.empty()) output_ = devices_[0];
  if (!options_.strict_source || devices_.empty()) return;
  for (const auto& [name, module] : named_tree(*source_))
    for (const auto* registry : {&module->own_parameters(), &module->own_buffers()})
      for (const auto& item : *registry)
        RAMET_CHECK(!item.value().defined() || item.value().device() == devices_[0], "DataParallel",
                    "module must have its parameters and buffers on device ", devices_[0],
                    " (device_ids[0]) but found one of them on device: ", item.value().device(),
                    " ('", full_name(name, item.key()), "')");
}
DataParallelBase::~DataParallelBase() = default;

Device DataParallelBase::home() const {
  const Tensor* t = first_tensor(*source_);
  return t ? t->device() : current_device();
}

bool DataParallelBase::alone() const {
  if (always_replicas_) return false;
  return devices_.empty() ||
         (devices_.size() == 1 && options_.order.leaves() <= 1 && home() == devices_[0]);
}

ReplicaSet& DataParallelBase::replicas() {
  RAMET_CHECK(!devices_.empty(), "DataParallel", "a transparent wrapper has no replicas");
  if (!set_) {
    ReplicaOptions options;
    options.order = options_.order;
    options.bucket_bytes = options_.bucket_bytes;
    set_ = std::make_unique<ReplicaSet>(source_, devices_, options);
  }
  return *set_;
}

std::vector<std::shared_ptr<Module>> DataParallelBase::ready_replicas() {
  const RecordScope scope("DataParallel.replicate");
  replicas().prepare();
  std::vector<std::shared_ptr<Module>> out;
  for (int i = 0; i < replicas().size(); ++i) out.push_back(replicas().shell(i));
  return out;
}

void DataParallelBase::begin_forward(const DataParallelCall&) {}

void DataParallelBase::scatter(DataParallelCall& call) {
  const RecordScope scope("DataParallel.scatter");
  const std::vector<Device>& where = replicas().device_of();
  Extent extent(options_.dim);
  call.measure(extent);
  ScatterPlan plan;
  plan.dim = options_.dim;
  plan.alias = options_.alias;
  size_t count = extent.replicas() ? extent.replicas() : 1;
  if (extent.scattered()) {
    const Split split = options_.split             ? *options_.split
                        : options_.order.is_tree() ? Split::balanced()
                                                   : Split::chunk();
    plan.sizes = split.cut("scatter", extent.size(), where.size());
    count = plan.sizes.size();
  }
  RAMET_CHECK(!extent.replicas() || extent.replicas() == count, "scatter", extent.replicas_path(),
              ": got ", extent.replicas(), " values for as many replicas, but there are ", count,
              " pieces");
  RAMET_CHECK(count <= where.size(), "scatter", extent.replicas_path(), ": got ", count,
              " values, expected at most one for each of ", where.size(), " replicas");
  plan.devices.assign(where.begin(), where.begin() + static_cast<std::ptrdiff_t>(count));
  plan_ = plan;
  call.scatter(plan);
}

void DataParallelBase::parallel_apply(const std::vector<std::shared_ptr<Module>>& modules,
                                      DataParallelCall& call) {
  const RecordScope scope("DataParallel.parallel_apply");
  const size_t count = call.parts();
  RAMET_CHECK(count > 0 && count <= modules.size(), "parallel_apply", "argument lists: got ", count,
              ", expected 1 to ", modules.size());
  RandomRegion region(home());
  std::vector<ReplicaRandomRef> random;
  int64_t base = first_sample_;
  const bool by_sample = plan_.dim == 0 && plan_.sizes.size() == count;
  for (size_t i = 0; i < count; ++i) {
    const int64_t samples = by_sample ? plan_.sizes[i] : -1;
    random.push_back(
        region.shard(first_shard_ + static_cast<int64_t>(i), by_sample ? base : 0, samples));
    if (by_sample) base += samples;
  }
  replicas().apply(
      [&](int i) {
        const auto k = static_cast<size_t>(i);
        const ReplicaRandomGuard numbers(random[k]);
        call.forward(*modules[k], k);
      },
      static_cast<int>(count));
  region.close();
}

void DataParallelBase::gather(DataParallelCall& call) { gather_pieces(call, plan_.sizes); }

void DataParallelBase::gather_pieces(DataParallelCall& call,
                                     const std::vector<int64_t>& sizes) const {
  const RecordScope scope("DataParallel.gather");
  GatherPlan plan;
  plan.device = output_device();
  plan.dim = options_.dim;
  plan.scalars = options_.scalars;
  plan.sizes = sizes;
  plan.on_result = &on_result_;
  plan.keep_scalars = devices_.size() <= 1 && options_.order.leaves() <= 1;
  call.gather(plan);
}

Device DataParallelBase::output_device() const {
  return devices_.empty() && !options_.output_device ? home() : output_;
}

void DataParallelBase::run(DataParallelCall& call) {
  const RecordScope scope("DataParallel.forward");
  if (alone()) return run_alone(call);
  const OneAtATime alone_here(
      running_, "DataParallel",
      "a forward of this object is running already, expected one at a time (data_parallel() "
      "may be called by several threads)");
  const std::vector<std::shared_ptr<Module>> modules = ready_replicas();
  begin_forward(call);
  scatter(call);
  parallel_apply(modules, call);
  gather(call);
}

// Runs the module itself, on arguments that are where it is, and moves the results to where they
// are wanted. It writes nothing of this object, so as many calls may run at a time as the module
// allows.
void DataParallelBase::run_alone(DataParallelCall& call) const {
  const Device here = home();
  ScatterPlan plan;
  plan.devices = {here};
  plan.dim = options_.dim;
  Extent extent(options_.dim);
  if (!devices_.empty()) call.measure(extent);
  RAMET_CHECK(extent.replicas() <= 1, "scatter", extent.replicas_path(), ": got ",
              extent.replicas(), " values for one replica");
  if (extent.scattered()) plan.sizes = {extent.size()};
  call.scatter(plan);
  const DeviceGuard current(here);
  call.forward(*source_, 0);
  gather_pieces(call, plan.sizes);
}

// ---- the functional form's cache ----------------------------------------------------------------

namespace {

struct Cache {
  struct Kept {
    std::weak_ptr<Module> module;
    std::unique_ptr<ReplicaSet> set;
  };
  std::mutex mutex;
  std::vector<Kept> kept;  // few: a program has few modules

  // Removes sets of modules that are gone. They are returned, so that the caller destroys them
  // outside the lock.
  std::vector<Kept> expired() {
    std::vector<Kept> out;
    for (size_t i = kept.size(); i-- > 0;) {
      if (!kept[i].module.expired()) continue;
      out.push_back(std::move(kept[i]));
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return out;
  }
};
Cache& cache() {
  static Cache c;
  return c;
}

}  // namespace

std::unique_ptr<ReplicaSet> take_cached(const Module& module, const std::vector<Device>& devices,
                                        ReduceOrder order) {
  Cache& c = cache();
  std::vector<Cache::Kept> gone;
  std::unique_ptr<ReplicaSet> found;
  {
    const std::lock_guard<std::mutex> lock(c.mutex);
    gone = c.expired();
    for (size_t i = 0; i < c.kept.size() && !found; ++i) {
      const ReplicaSet& set = *c.kept[i].set;
      if (set.source().get() != &module || set.devices() != devices || set.options().order != order)
        continue;
      found = std::move(c.kept[i].set);
      c.kept.erase(c.kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return found;
}

void put_cached(const std::shared_ptr<Module>& module, std::unique_ptr<ReplicaSet> set) {
  set->hold_source(false);
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.kept.push_back({module, std::move(set)});
}

}  // namespace detail

void clear_data_parallel_cache() {
  std::vector<detail::Cache::Kept> gone;
  {
    const std::lock_guard<std::mutex> lock(detail::cache().mutex);
    gone.swap(detail::cache().kept);
  }
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
