// Members of modules that their clones lost.
#pragma once
#include <string>
#include <vector>

#include "nn/module/module.h"

namespace ramet::nn::parallel {

/// A parameter: the implementations of its tensors in the source, and those in a clone.
struct Kept {
  const std::string* name;
  std::vector<const TensorImpl*> ours, theirs;
};

/// Every member that holds a parameter follows in the clone: `theirs` hold as many references to
/// its clone as `ours` to the parameter, in members, lists in members and registries. A tie that
/// exists in a member only (b->weight = a->weight without registering it) is lost by clone(), and
/// the copy would compute with another tensor without a word. The modules are in the same order;
/// `names`: as errors name them. Modules without a plain_copy() are not looked at.
void check_members(const std::vector<std::string>& names, const std::vector<const Module*>& ours,
                   const std::vector<const Module*>& theirs, const std::vector<Kept>& parameters);

}  // namespace ramet::nn::parallel
