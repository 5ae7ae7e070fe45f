// Checks that all ranks have the same model and train it by the same rules.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/module.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/model/leaves_internal.h"

namespace ramet::distributed::detail {

/// Names and values, as texts of one line.
using SharedOptions = std::vector<std::pair<std::string, std::string>>;
std::string text_of(Average average);
std::string text_of(ReduceOrder order);
inline std::string text_of(bool on) { return on ? "true" : "false"; }
/// "average: got sum, expected mean as on rank 0"; empty if the two are equal.
std::string difference(const SharedOptions& first, const SharedOptions& theirs);

/// Compares the ranks' models and options, except for what is excluded. Of all parameters and
/// buffers it compares names, dtypes, shapes, strides, requires_grad and ties, and of buffers also
/// the policies. `options` are those that must be the same on all ranks. `checked` throws if this
/// rank cannot take part for reasons of its own. An Error on every rank gives these reasons. Else
/// it names all options in which a rank differs from rank 0, or the first difference of each model.
void verify_model(ProcessGroup& group, const char* op, const nn::Module& module,
                  const std::function<Exceptions()>& checked, const SharedOptions& options,
                  const std::string& name);
/// Gives every rank the values of rank `root`, except for tensors that are excluded or not chosen.
void copy_model(ProcessGroup& group, const nn::Module& module, const Exceptions& exceptions,
                int root, const std::string& name,
                const std::function<bool(const Tensor&)>& chosen = {});

}  // namespace ramet::distributed::detail
