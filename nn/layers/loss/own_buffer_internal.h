// Tensors among the options of a loss, such as weights of classes, are its buffers.
#pragma once
#include "autograd/tensor.h"

namespace ramet::nn {

/// A clone's reset() must register a tensor of its own. Its values are copied from the original
/// afterwards.
inline Tensor own_buffer(const Tensor& t) { return t.defined() ? t.detach().clone() : Tensor(); }

}  // namespace ramet::nn
