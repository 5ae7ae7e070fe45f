// Do all ranks have the same model?
#pragma once
#include "nn/module.h"
#include "parallel/distributed/process_group.h"

namespace ramet::distributed::detail {

/// Compares names, dtypes, shapes, strides, requires_grad and ties of all parameters and buffers
/// over the ranks. An Error on every rank that names the first difference of each rank from rank 0.
void verify_model(ProcessGroup& group, const nn::Module& module, const std::string& name);
/// Gives every rank the values of rank `root`.
void copy_model(ProcessGroup& group, const nn::Module& module, int root, const std::string& name);

}  // namespace ramet::distributed::detail
