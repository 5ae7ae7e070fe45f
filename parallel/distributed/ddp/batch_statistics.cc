#include "parallel/distributed/ddp/batch_statistics_internal.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "nn/layers/norm/batchnorm.h"
#include "parallel/distributed/group/tensor_bytes_internal.h"
#include "parallel/distributed/meet/socket_internal.h"

namespace ramet::distributed::detail {

using nn::detail::BatchNormState;

bool deposits_statistics(const nn::Module& m) {
  const auto* norm = dynamic_cast<const BatchNormState*>(&m);
  return norm && norm->running_mean.defined() &&
         m.buffer_policy("running_mean") == nn::BufferPolicy::merge_stats;
}

void merge_statistics(Companion& companion, const std::vector<ReplicatedModule>& norms) {
  const NoGradGuard off;
  if (std::ranges::none_of(norms, [](const auto& m) { return m.first->is_training(); })) return;
  Packer mine;
  for (const auto& [module, replicas] : norms) {
    mine.number(replicas.size());
    for (nn::Module* replica : replicas) {
      const auto deposits = dynamic_cast<BatchNormState&>(*replica).deposited();
      mine.number(deposits.size());
      for (const auto& d : deposits) {
        mine.number(static_cast<uint64_t>(d.count));
        mine.text(bytes_of(d.mean)).text(bytes_of(d.var));
      }
    }
  }
  const auto all = companion.exchange("batch norm statistics", mine.bytes());
  std::vector<Unpacker> from;
  for (const auto& bytes : all)
    if (bytes) from.emplace_back(*bytes);
  const auto next = [](Unpacker& u, const Tensor& like) {
    return tensor_of(u.text(), like, "statistics").to(like.device());
  };
  // Reads all statistics before it merges any.
  std::vector<std::vector<BatchNormState>> shards_of;
  for (const auto& [module, replicas] : norms) {
    const auto& source = dynamic_cast<const BatchNormState&>(*module);
    std::vector<BatchNormState>& shards = shards_of.emplace_back();
    for (Unpacker& u : from) {
      for (uint64_t there = u.number(); there > 0 && u.good(); --there) {
        shards.emplace_back(source.options);
        std::vector<BatchNormState::Deposit> deposits;
        for (uint64_t left = u.number(); left > 0 && u.good(); --left) {
          auto& d = deposits.emplace_back();
          d.count = static_cast<int64_t>(u.number());
          d.mean = next(u, source.running_mean);
          d.var = next(u, source.running_var);
        }
        shards.back().set_deposits(std::move(deposits));
      }
    }
  }
  for (const Unpacker& u : from)
    RAMET_CHECK(u.good(), "ddp", "statistics of another rank: they are of another model");
  auto shards = shards_of.begin();
  for (const auto& [module, replicas] : norms) {
    std::vector<const BatchNormState*> list;
    for (const BatchNormState& s : *shards++) list.push_back(&s);
    dynamic_cast<BatchNormState&>(*module).merge(list);
    for (nn::Module* replica : replicas) replica->discard_deposits();
  }
}

}  // namespace ramet::distributed::detail
