// Optimizers as PyTorch and LibTorch write them.
#pragma once
#include "autograd/ivalue.h"

namespace ramet {
namespace formats {
namespace detail {

/// Is it the state of an optimizer: of torch::save() in C++, or state_dict() in Python?
bool is_optimizer(const IValue& tree);
/// The same as this library's optimizers write it: groups and states by number. Errors name
/// `where`.
IValue optimizer_archive(const IValue& tree, const std::string& where);

}  // namespace detail
}  // namespace formats
}  // namespace ramet
