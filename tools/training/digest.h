// One number for a whole training state.
#pragma once
#include <string>

#include "nn/module.h"
#include "nn/optim/optimizer.h"

namespace ramet::training {

/// 16 hexadecimal digits: xxHash (XXH3, 64 bits) over names, shapes and bytes of all parameters and buffers, and over the
/// optimizer's state as it would be saved. Equal states give equal digests on any machine of the same byte order.
std::string digest_of(const nn::Module& model, const optim::Optimizer& optimizer);

}  // namespace ramet::training
