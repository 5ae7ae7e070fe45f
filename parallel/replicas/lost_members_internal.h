// Finds members of modules that their clones lost.
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

/// Checks that every member that holds a parameter holds its counterpart in the clone. `theirs`
/// must hold as many references to the parameter's clone as `ours` hold to the parameter: in
/// members, lists in members and registries. clone() loses a tie that exists in a member only
/// (b->weight = a->weight without registering it). The copy would then compute with another tensor,
/// without an error. The modules are in the same order; `names` are for errors. Modules without a
/// plain_copy() are not checked.
void check_members(const std::vector<std::string>& names, const std::vector<const Module*>& ours,
                   const std::vector<const Module*>& theirs, const std::vector<Kept>& parameters);

}  // namespace ramet::nn::parallel
