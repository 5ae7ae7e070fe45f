// Results of a module's forward that tell its reducer of every backward through them: also of one
// that reaches none of its parameters, for which other ranks would wait.
#pragma once
#include <memory>

#include "autograd/tensor.h"

namespace ramet::distributed::detail {

class GradientReducer;

/// A result of the last forward of the reducer's `unit`, with such an edge before its history; as
/// it is, where it has none. It shares the memory.
Tensor marked(const Tensor& result, const std::shared_ptr<GradientReducer>& reducer, size_t unit);

}  // namespace ramet::distributed::detail
