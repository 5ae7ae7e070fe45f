// One hash of all that a run has learned.
#pragma once
#include <string>

#include "nn/module/module.h"
#include "nn/optim/optimizer.h"

namespace ramet::training {

/// 16 hexadecimal digits: XXH3 of the archive of all parameters, buffers and the optimizer's state
/// and options, names, types and shapes included. Equal digests mean equal bits.
std::string digest_of(const nn::Module& model, const optim::Optimizer& optimizer);

}  // namespace ramet::training
