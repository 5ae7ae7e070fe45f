#include "parallel/distributed/data_parallel.h"

#include <algorithm>
#include <cstring>

#include "autograd/grad_mode.h"
#include "nn/batchnorm.h"
#include "parallel/distributed/gradient_reducer_internal.h"
#include "parallel/distributed/model_table_internal.h"
#include "parallel/distributed/socket_internal.h"
#include "runtime/capture.h"

namespace ramet::distributed::detail {

using nn::detail::BatchNormState;

namespace {

Device home_of(const nn::Module& module) {
  const auto parameters = module.parameters();
  RAMET_CHECK(std::ranges::any_of(parameters, [](const Tensor& p) { return p.requires_grad(); }),
              "ddp",
              "DistributedDataParallel is not needed when a module doesn't have any parameter that "
              "requires a gradient.");
  return parameters[0].device();
}

}  // namespace

nn::parallel::DataParallelOptions DdpCore::local_options(const ProcessGroup& group,
                                                         const nn::Module& module,
                                                         const DdpOptions& options) {
  nn::parallel::DataParallelOptions local;
  local.devices = options.devices.empty() ? std::vector<Device>{home_of(module)} : options.devices;
  local.bucket_bytes = options.bucket_bytes;
  if (!options.order.is_tree()) {
    local.order = options.order;
    return local;
  }
  const int v = options.order.leaves(), n = group.size();
  RAMET_CHECK(v % n == 0, "ddp", "tree(V): got V = ", v, " and ", n,
              " ranks, expected a number of ranks that divides V");
  local.order = ReduceOrder::tree(v / n);
  return local;
}

DdpCore::DdpCore(std::shared_ptr<ProcessGroup> group, std::shared_ptr<nn::Module> module,
                 const DdpOptions& options)
    : group_(std::move(group)),
      module_(std::move(module)),
      options_(options),
      reducer_(std::make_shared<GradientReducer>(group_, options_, *module_)) {
  verify_model(*group_, *module_, options_.name);
  for (const auto& stage : options_.stages) register_stage(stage);
  if (options_.init_sync) copy_model(*group_, *module_, options_.sync_from, options_.name);
}
DdpCore::~DdpCore() = default;

void DdpCore::attach(nn::parallel::ReplicaSet& set) {
  reducer_->attach(set);
  set.set_grad_reducer(reducer_);
  bool norms = false;
  for (const auto& m : module_->modules())
    norms = norms || dynamic_cast<const BatchNormState*>(m.get()) != nullptr;
  if (norms && group_->size() > 1) set.set_merger([this](const auto& modules) { merge(modules); });
}

void DdpCore::forward_begins() const {
  // Before it can fail on one rank alone, which would end the group.
  capture::refuse("ddp", "ranks meet in its forward and backward");
}
void DdpCore::set_sync(bool on) { reducer_->set_sync(on); }
bool DdpCore::sync() const { return reducer_->sync(); }
void DdpCore::set_rows(int64_t rows) { reducer_->set_rows(rows); }
std::vector<std::string> DdpCore::unused() const { return reducer_->unused(); }
CommStages& DdpCore::stages() const { return reducer_->stages(); }
void DdpCore::register_stage(const std::shared_ptr<CommStage>& stage) {
  reducer_->register_stage(stage);
}

DdpCore::Cut DdpCore::cut(int64_t extent, size_t local) const {
  const size_t shards = local * static_cast<size_t>(group_->size());
  RAMET_CHECK(extent >= static_cast<int64_t>(shards), "ddp", "the whole batch: got ",
              std::max<int64_t>(extent, 0), " rows, expected at least one for each of ", shards,
              " shards");
  Cut c;
  c.sizes = parallel::Split::balanced().cut("ddp", extent, shards);
  c.first = static_cast<size_t>(group_->rank()) * local;
  c.last = c.first + local;
  for (size_t i = 0; i < c.first; ++i) c.before += c.sizes[i];
  for (size_t i = c.first; i < c.last; ++i) c.rows += c.sizes[i];
  return c;
}

namespace {

void pack(Packer& p, const Tensor& t) {
  const Tensor host = t.to(Device(kCPU, 0)).contiguous();
  p.text(std::string(static_cast<const char*>(host.ptr()), host.nbytes()));
}

Tensor unpack(Unpacker& u, const Tensor& like) {
  const std::string bytes = u.text();
  Tensor t(TensorBase::empty(like.sizes(), like.scalar_type(), Device(kCPU, 0)));
  RAMET_CHECK(bytes.size() == t.nbytes(), "ddp", "statistics of another rank: got ", bytes.size(),
              " bytes, expected ", t.nbytes());
  std::memcpy(t.ptr(), bytes.data(), bytes.size());
  return t.to(like.device());
}

}  // namespace

// Statistics of all ranks' shards, in the order of the shards.
void DdpCore::merge(
    const std::vector<std::pair<nn::Module*, std::vector<nn::Module*>>>& modules) const {
  const NoGradGuard off;
  const bool training = std::ranges::any_of(modules, [](const auto& m) {
    return m.first->is_training() && dynamic_cast<BatchNormState*>(m.first);
  });
  if (!training) {  // nobody has seen anything
    for (const auto& [module, replicas] : modules) module->merge_replicas(replicas);
    return;
  }
  Packer mine;
  for (const auto& [module, replicas] : modules) {
    if (!dynamic_cast<BatchNormState*>(module)) continue;
    for (nn::Module* replica : replicas) {
      const auto deposits = dynamic_cast<BatchNormState*>(replica)->deposited();
      mine.number(deposits.size());
      for (const auto& d : deposits) {
        mine.number(static_cast<uint64_t>(d.count));
        pack(mine, d.mean);
        pack(mine, d.var);
      }
    }
  }
  const auto all = group_->exchange(mine.bytes(), options_.name + "/batch norm statistics");
  std::vector<Unpacker> from;
  for (const std::string& bytes : all) from.emplace_back(bytes);
  // All is read before anything is merged.
  std::vector<std::vector<BatchNormState>> shards_of;
  for (const auto& [module, replicas] : modules) {
    auto* source = dynamic_cast<BatchNormState*>(module);
    if (!source) continue;
    std::vector<BatchNormState>& shards = shards_of.emplace_back();
    for (Unpacker& u : from) {
      for (size_t i = 0; i < replicas.size(); ++i) {
        shards.emplace_back(source->options);
        std::vector<BatchNormState::Deposit> deposits;
        for (uint64_t left = u.number(); left > 0; --left) {
          auto& d = deposits.emplace_back();
          d.count = static_cast<int64_t>(u.number());
          d.mean = unpack(u, source->running_mean);
          d.var = unpack(u, source->running_var);
        }
        shards.back().set_deposits(std::move(deposits));
      }
    }
  }
  for (const Unpacker& u : from)
    RAMET_CHECK(u.good(), "ddp", "statistics of another rank: they are of another model");
  auto shards = shards_of.begin();
  for (const auto& [module, replicas] : modules) {
    auto* source = dynamic_cast<BatchNormState*>(module);
    if (!source) {
      module->merge_replicas(replicas);
      continue;
    }
    std::vector<const BatchNormState*> list;
    for (const BatchNormState& s : *shards++) list.push_back(&s);
    source->merge(list);
    for (nn::Module* replica : replicas) replica->discard_deposits();
  }
}

}  // namespace ramet::distributed::detail
