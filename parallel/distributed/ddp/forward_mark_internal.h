// Marks the results of a module's forward so that every backward through them notifies the module's
// reducer. This includes a backward that reaches none of the module's parameters: without a notice,
// other ranks would wait for this rank.
#pragma once
#include <memory>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

class GradientReducer;

/// Returns the result of the last forward of the reducer's `unit`, with such a mark before its
/// history. It shares the memory. A result without a history is returned unchanged.
Tensor marked(const Tensor& result, const std::shared_ptr<GradientReducer>& reducer, size_t unit);

}  // namespace ramet::distributed::detail
