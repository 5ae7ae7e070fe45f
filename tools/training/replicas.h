// The model on one or several devices.
#pragma once
#include <string>
#include <vector>

#include "nn/module/sequential.h"
#include "parallel/apply/data_parallel.h"

namespace ramet::training {

/// "cpu:0,cpu:1" as devices, each resolved; `own_gpu`, where there is one, is what "cuda" without a
/// number stands for. An Error where one does not exist, and on an empty list.
std::vector<Device> parse_devices(const std::string& list, int own_gpu = -1);
/// "fixed", "any" or "tree:V". An Error otherwise.
parallel::ReduceOrder parse_order(const std::string& text);

/// How many of a batch's rows each replica gets. The replicas are those of this process alone, or
/// (`processes` > 0) those of --ddp. An Error where there is not one row for each.
std::vector<int64_t> shares_of(int64_t rows, size_t devices, int processes,
                               const std::string& reduce);

using Replicas = nn::parallel::DataParallel<nn::Sequential>;

/// The batch is cut over the devices, the result is on the first one. Errors as ReplicaSet's are
/// found here.
std::unique_ptr<Replicas> make_replicas(const nn::Sequential& model,
                                        const std::vector<Device>& devices,
                                        const std::string& reduce);

}  // namespace ramet::training
