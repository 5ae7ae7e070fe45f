// data_parallel and DataParallel: a module's forward over a batch that is cut over devices.
//
//   DataParallel<Net> parallel_net(net, {"cpu:0", "cpu:1"});       // or DataParallelOptions
//   Tensor loss = cross_entropy(parallel_net(images), labels);
//   // gradients arrive in net's parameters
//   loss.backward();
//
// Note [One data-parallel forward]
// The arguments are cut along `dim` (parallel/apply/containers.h says what is cut). One replica
// runs on each device that got a piece. The results are joined on the output device. Gradients of
// the replicas' parameters are added up in a fixed order into the source's while backward still
// runs. Buffers follow their policies. The source module is never moved. For every number of
// devices, its generator ends in the same state. Dropout masks are the same where dimension 0 of
// the dropped tensor is the one that was cut: Note [Random numbers] in runtime/devices/generator.h.
// If the only device holds the module, the module itself runs.
//
// Under ReduceOrder::tree(V) the batch, also a short last one, is cut into V shards, and each is
// computed separately. So parameters after training are equal bit for bit for every number of
// devices that divides V.
#pragma once
#include <atomic>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nn/module/arg.h"
#include "parallel/apply/join.h"
#include "parallel/apply/parallel_apply.h"
#include "parallel/apply/spread.h"
#include "parallel/replicas/replica_set.h"
#include "parallel/replicas/replicate.h"

namespace ramet {
namespace nn {
namespace parallel {

struct DataParallelOptions {
  DataParallelOptions() = default;
  DataParallelOptions(std::vector<Device> devices_) : devices(std::move(devices_)) {}
  DataParallelOptions(std::initializer_list<Device> devices_)
      : devices(std::vector<Device>(devices_)) {}

  std::optional<std::vector<Device>> devices;  // default: default_devices()
  std::optional<Device> output_device;         // default: the first device
  /// The batch's dimension, which is cut and joined.
  int64_t dim = 0;
  std::optional<ramet::parallel::Split> split;  // default: chunk, under tree(V) balanced
  /// The order in which gradients are added.
  ReduceOrder order;
  /// How 0-dim results are joined.
  Scalars scalars = Scalars::stack;
  /// What the piece on the input's own device is.
  ramet::parallel::Alias alias = ramet::parallel::Alias::view;
  /// The size up to which gradients are added, and parameters are copied, together.
  int64_t bucket_bytes = int64_t{1} << 20;
  // an Error unless the module is on the first device (PyTorch's rule)
  bool strict_source = false;
};

/// All CUDA devices; without any, cpu:0 .. cpu:k-1 for the k threads of the pool.
RAMET_API std::vector<Device> default_devices();

/// The properties of one device for DataParallel's balance check.
struct DeviceCapacity {
  /// Its number.
  int index;
  /// Bytes, and multiprocessors:
  int64_t memory, cores;
};
/// PyTorch's warning if the smallest device has less than 75 % of the largest one's memory, or else
/// of its cores.
RAMET_API std::optional<std::string> imbalance_warning(const std::vector<DeviceCapacity>& devices);

/// One forward of a DataParallel: its arguments, what each replica gets of them, and what each
/// returns. The steps of DataParallelBase know no types; a call has them.
class DataParallelCall {
 public:
  virtual ~DataParallelCall() = default;
  /// Reports each tensor in the arguments to `extent`.
  virtual void measure(Extent& extent) const = 0;
  /// Cuts the arguments: one part for each device of the plan.
  virtual void scatter(const ScatterPlan& plan) = 0;
  /// Drops all parts but those from `first` to before `last`.
  virtual void keep_parts(size_t first, size_t last) = 0;
  /// The number of parts.
  virtual size_t parts() const = 0;
  /// Calls the replica with part i, and keeps its result. Several threads may do so, each for
  /// another part.
  virtual void forward(Module& replica, size_t i) = 0;
  /// Joins the results, which are consumed.
  virtual void gather(const GatherPlan& plan) = 0;
};

namespace detail {

template <class M, class Part> decltype(auto) apply_to(M& m, Part& part) {
  return std::apply([&m](auto&... a) -> decltype(auto) { return call(m, a...); }, part);
}

/// A call of modules of class M with a tuple of arguments.
template <class M, class Arguments> class TypedCall final : public DataParallelCall {
  using Part = typename Spread<Arguments>::Part;
  using Result = std::decay_t<decltype(apply_to(std::declval<M&>(), std::declval<Part&>()))>;
  using Whole = typename Join<Result>::Whole;

 public:
  explicit TypedCall(Arguments arguments) : arguments_(std::move(arguments)) {}
  void measure(Extent& extent) const override {
    Spread<Arguments>::measure(arguments_, extent, "argument");
  }
  void scatter(const ScatterPlan& plan) override {
    parts_ = Spread<Arguments>::parts(arguments_, plan, How::scatter);
    results_.resize(parts_.size());
  }
  void keep_parts(size_t first, size_t last) override {
    const auto from = std::make_move_iterator(parts_.begin());
    parts_ = std::vector<Part>(from + static_cast<std::ptrdiff_t>(first),
                               from + static_cast<std::ptrdiff_t>(last));
    results_.resize(parts_.size());
  }
  size_t parts() const override { return parts_.size(); }
  void forward(Module& replica, size_t i) override {
    results_[i].emplace(apply_to(dynamic_cast<M&>(replica), parts_[i]));
  }
  void gather(const GatherPlan& plan) override {
    std::vector<Result> results;
    for (std::optional<Result>& r : results_) results.push_back(std::move(*r));
    whole_.emplace(Join<Result>::whole(results, plan, "result"));
  }
  /// What gather() made.
  Whole take() { return std::move(*whole_); }

 private:
  const Arguments arguments_;
  std::vector<Part> parts_;
  std::vector<std::optional<Result>> results_;
  std::optional<Whole> whole_;
};

/// The part that does not depend on the types: devices, plans, random numbers, the replica set.
class RAMET_API DataParallelBase {
 public:
  DataParallelBase(std::shared_ptr<Module> source, DataParallelOptions options);
  virtual ~DataParallelBase();
  DataParallelBase(const DataParallelBase&) = delete;
  DataParallelBase& operator=(const DataParallelBase&) = delete;

  const DataParallelOptions& options() const { return options_; }
  /// Empty for the transparent wrapper.
  const std::vector<Device>& devices() const { return devices_; }
  Device output_device() const;
  /// The replica set, made at first use.
  ReplicaSet& replicas();

  // The steps of a forward over replicas, in this order. An override may wrap or replace any of
  // them. (If the module itself runs, they are not called.)
  /// The replicas that may take part, made again if the module has changed. parallel_apply updates
  /// their values.
  virtual std::vector<std::shared_ptr<Module>> ready_replicas();
  /// Called before anything is cut: a module over processes communicates with the other ranks here.
  virtual void begin_forward(const DataParallelCall& call);
  /// Cuts the arguments: one part for each replica that takes part; at least one.
  virtual void scatter(DataParallelCall& call);
  /// call.forward(*replicas[i], i) for each part i, concurrently.
  virtual void parallel_apply(const std::vector<std::shared_ptr<Module>>& replicas,
                              DataParallelCall& call);
  virtual void gather(DataParallelCall& call);

 protected:
  void run(DataParallelCall& call);
  /// Does the module itself run?
  bool alone() const;
  void run_alone(DataParallelCall& call) const;
  void gather_pieces(DataParallelCall& call, const std::vector<int64_t>& sizes) const;
  Device home() const;

  std::shared_ptr<Module> source_;
  DataParallelOptions options_;
  std::vector<Device> devices_;
  Device output_ = Device(kCPU, 0);
  std::unique_ptr<ReplicaSet> set_;
  ScatterPlan plan_;  // of the running forward
  std::atomic<bool> running_{false};
  // For a batch that other processes share: whether replicas run even if the module could run
  // itself, and where this process's shards and samples begin.
  bool always_replicas_ = false;
  int64_t first_shard_ = 0, first_sample_ = 0;
  // Called for every tensor that gather() returns.
  std::function<Tensor(const Tensor&)> on_result_;
};

/// The replica sets of the functional form. A call takes a set out while it uses it, so concurrent
/// calls on one module get different sets.
RAMET_API std::unique_ptr<ReplicaSet> take_cached(const Module& module,
                                                  const std::vector<Device>& devices,
                                                  ReduceOrder order);
RAMET_API void put_cached(const std::shared_ptr<Module>& module, std::unique_ptr<ReplicaSet> set);

}  // namespace detail

/// A module over several devices. M: a module class or its holder. Any devices may be given, also
/// duplicates; by default the output goes to the first. An explicit empty list makes a transparent
/// wrapper: forward() calls the module itself. Only one forward over replicas may run at a time; a
/// second one is an Error. If the module itself runs, it decides how many may. Parameters, names
/// and state are the module's own: there is no "module." prefix.
template <class ModuleType> class DataParallel : public detail::DataParallelBase {
 public:
  using M = detail::module_class_t<ModuleType>;
  explicit DataParallel(const ModuleHolder<M>& module, DataParallelOptions options = {})
      : DataParallel(module.ptr(), std::move(options)) {}
  explicit DataParallel(const std::shared_ptr<M>& module, DataParallelOptions options = {})
      : DataParallelBase(module, std::move(options)), module_(module) {}

  /// The module that it runs.
  M& module() const { return *module_; }
  M* operator->() const { return module_.get(); }

  template <class... Args> auto forward(Args&&... args) {
    using Arguments = std::tuple<std::decay_t<Args>...>;
    detail::TypedCall<M, Arguments> call(Arguments(std::forward<Args>(args)...));
    this->run(call);
    return call.take();
  }
  template <class... Args> auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<M> module_;
};

/// Takes any arguments, as a tuple; returns the result of DataParallel's forward. Replica sets are
/// kept from call to call while the module lives, one for each (module, devices, order). An empty
/// list of devices is an Error.
template <class ModuleType, class... Args>
auto data_parallel(const ModuleType& module, const std::tuple<Args...>& inputs,
                   const DataParallelOptions& options) {
  using M = detail::module_class_t<ModuleType>;
  struct Once : DataParallel<M> {
    Once(const std::shared_ptr<M>& m, const DataParallelOptions& o) : DataParallel<M>(m, check(o)) {
      if (!this->alone()) this->set_ = detail::take_cached(*m, this->devices_, o.order);
    }
    ~Once() override {
      if (this->set_) detail::put_cached(this->source_, std::move(this->set_));
    }
    static const DataParallelOptions& check(const DataParallelOptions& o) {
      RAMET_CHECK(!o.devices || !o.devices->empty(), "data_parallel",
                  "at least one device is required");
      return o;
    }
  };
  Once once(detail::shared(module), options);
  return std::apply([&](const auto&... a) { return once.forward(a...); }, inputs);
}
/// LibTorch's form: one tensor in, one tensor out.
template <class ModuleType>
Tensor data_parallel(ModuleType module, Tensor input,
                     std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, int64_t dim = 0) {
  DataParallelOptions options;
  options.devices = std::move(devices);
  options.output_device = output_device;
  options.dim = dim;
  return data_parallel(module, std::make_tuple(std::move(input)), options);
}
/// Drops the replica sets that data_parallel keeps.
RAMET_API void clear_data_parallel_cache();

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
