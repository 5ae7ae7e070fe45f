// Do all ranks have the same model?
#pragma once
#include "nn/module.h"
#include "parallel/distributed/leaves_internal.h"
#include "parallel/distributed/process_group.h"

namespace ramet::distributed::detail {

/// Compares names, dtypes, shapes, strides, requires_grad and ties of all parameters and buffers,
/// and the buffers' policies, over the ranks; but for what is excepted. An Error on every rank that
/// names the first difference of each rank from rank 0.
void verify_model(ProcessGroup& group, const nn::Module& module, const Exceptions& exceptions,
                  const std::string& name);
/// Gives every rank the values of rank `root`, but for what is excepted.
void copy_model(ProcessGroup& group, const nn::Module& module, const Exceptions& exceptions,
                int root, const std::string& name);

}  // namespace ramet::distributed::detail
