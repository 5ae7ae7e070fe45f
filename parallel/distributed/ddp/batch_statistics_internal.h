// Merges the running statistics of batch norms over the ranks.
#pragma once
#include <utility>
#include <vector>

#include "nn/module/module.h"
#include "parallel/distributed/ddp/companion_internal.h"

namespace ramet::distributed::detail {

/// A module of this rank, and those of its replicas that took part in the forward.
using ReplicatedModule = std::pair<nn::Module*, std::vector<nn::Module*>>;

/// Is `m` a batch norm, and do its replicas deposit their statistics?
bool deposits_statistics(const nn::Module& m);
/// Each batch norm of the list takes over the statistics of all ranks' replicas, in the order of
/// the ranks. Collective, unless no batch norm of the list is in training mode.
void merge_statistics(Companion& companion, const std::vector<ReplicatedModule>& norms);

}  // namespace ramet::distributed::detail
