// Batch norms that freeze() folds into the convolutions before them.
//
// Note [Folded batch norms]
// In evaluation a batch norm multiplies each channel by a number and adds one. A convolution before
// it can do that with other weights. freeze() finds pairs of modules of which it can prove three
// things. The one's forward() is a convolution with its own attributes, the other's a batch norm in
// evaluation. Every result of the one is handed to the other, and to nothing else. Nothing else
// calls them, or holds them as a value. A forward() is read with the object's attributes.
// Conditions on them are decided. Checks that only raise are passed by. Then both objects get a
// program of their own for forward(): the convolution with the new weights, and one that returns
// its argument. The attributes stay as they are, and so does a file. An object's own program runs
// while its attributes, and those of its partner, are the ones that were folded. Otherwise both run
// as before.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "nn/script/module_internal.h"
#include "nn/script/program_internal.h"

namespace ramet::script {

/// The attributes that a pair of modules was folded with.
class FoldedAttributes {
 public:
  void add(const std::shared_ptr<Object>& object, size_t slot);
  /// Are they still there, unchanged?
  bool hold() const;

 private:
  struct Attribute {
    std::weak_ptr<Object> object;
    size_t slot;
    IValue value;
    int64_t version;  // of a tensor
  };
  std::vector<Attribute> list_;
};

/// A forward() of one object.
struct OwnForward {
  std::shared_ptr<const FoldedAttributes> folded;
  ScriptFunction function;
};

/// Folds what it can in the modules below `root`, of which the methods `called` may run. `kept`
/// says of an attribute whether the code or a program may change it.
void fold_batch_norms(const LoadedModule& root, const std::vector<const ScriptFunction*>& called,
                      const std::function<bool(const Object&, size_t)>& kept);

}  // namespace ramet::script
