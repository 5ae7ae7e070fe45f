// Members of modules that their clones lost.
#pragma once
#include <functional>
#include <string>

#include "nn/module/module.h"

namespace ramet::nn::parallel {

/// A word of a module and the clone's: null, or the name of the parameter whose implementation the
/// first one is, where the second one is not that parameter's clone.
using Resolves = std::function<const std::string*(TensorImpl* ours, TensorImpl* theirs)>;

/// Looks at the clone's word at the place of each source word that is a parameter's implementation:
/// a Tensor is one pointer. A tie that exists in a member only (b->weight = a->weight without
/// registering it) is lost by clone(); the copy would compute with another tensor without a word.
/// `module`: as errors name it. Not every such word is a member's: padding holds what the memory
/// held before.
void check_members(const std::string& module, const Module& ours, const Module& theirs,
                   const Resolves& resolves);

}  // namespace ramet::nn::parallel
