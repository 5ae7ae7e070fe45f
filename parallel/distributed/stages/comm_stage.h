// The interfaces of communication hooks (CommStage), for programs that define their own. A hook
// acts between the ranks' gradients and their mean in DistributedDataParallel. stages.h has the
// library's own hooks.
//
// Note [Communication stages]
// A bucket's gradients pass through a chain of communication hooks, in the order in which these
// were registered. There are three kinds:
//   RouteStage   over which ranks this step's gradients are reduced
//   ReduceStage  what is reduced in a gradient's place, such as its factors. It passes that to the
//                hooks after it, as often as it wants
//   WireFormat   the format in which numbers are sent. The last one of the chain is what is sent;
//                formats before it round their input
//
// The whole chain runs on the group's thread as one operation for each bucket, concurrently with
// the backward. All ranks run the buckets in one order. Hooks work on float32: gradients of other
// dtypes are converted before and after.
//
// Sums. Each rank's numbers are encoded once, decoded where they are added, and added in float32
// from left to right by rank. So all ranks get the same bits. Two ranks send each other all
// numbers. With three or more ranks each part has an owner, and the mean of the part is encoded
// once more. Every rank, also the owner, takes the decoded mean. Values that are sent are never
// larger than the largest contribution. A mean is divided after the float32 sum and before it is
// encoded. A sum (Average::sum) is sent as the mean and multiplied back. Weights
// (Average::weighted) are applied after the decoder. A single rank sends nothing and rounds
// nothing.
//
// The result for a parameter does not depend on the other parameters of its bucket. Parts begin at
// the formats' blocks, and blocks and random numbers are counted from the parameter's start. So a
// run may continue with other buckets.
//
// After a failure gradients are as GradientReducer leaves them, and no state of the failed bucket
// has changed. The group has ended.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace distributed {

/// The context in which a communication hook is registered.
struct StageSetting {
  /// The module's group.
  ProcessGroup& group;
  /// Full names and sizes of the module's parameters.
  const std::map<std::string, std::vector<int64_t>>& parameters;
};

/// One object serves one DistributedDataParallel at a time, on one rank. One thread at a time calls
/// its functions.
class RAMET_API CommStage {
 public:
  virtual ~CommStage();
  /// Kind and settings, as in "int8(block 256, seed 1)": the same on all ranks.
  virtual std::string description() const = 0;
  /// Do reduced gradients have the same bits as without this hook?
  virtual bool lossless() const = 0;
  /// May a chain contain only one of these?
  virtual bool exclusive() const { return false; }
  /// Called when the hook is registered and has no state. Throws an Error if it cannot work.
  virtual void attach(const StageSetting& setting);
  /// This rank's state of the hook, for checkpoints. Keys are "FULL NAME OF THE PARAMETER.what".
  virtual std::map<std::string, Tensor> state() const;
  /// Replaces the whole state. An Error, with nothing changed, if it cannot belong to these
  /// parameters.
  virtual void load_state(const std::map<std::string, Tensor>& state);

 private:
  friend class CommStages;
  bool registered_ = false;
};

/// A hook that chooses which ranks reduce a step's gradients: post-local SGD.
class RAMET_API RouteStage : public CommStage {
 public:
  /// The group of step number `step`; null: the module's own. This rank must belong to the group.
  virtual std::shared_ptr<ProcessGroup> group(int64_t step) const = 0;
};

/// The values that are reduced under one name: a gradient, or what a hook made of it.
struct StageValues {
  std::string name;              // Of the parameter; a hook appends to it.
  Tensor values;                 // float32, contiguous, in host memory; undefined values if this
                                 // rank is not present
  std::vector<bool> present_on;  // [rank], at least one; the other ranks are left out
};

/// The hooks after a ReduceStage.
class RAMET_API StageNext {
 public:
  virtual ~StageNext();
  /// This rank among those that reduce, and their number:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The number of synchronised backwards before this one.
  virtual int64_t step() const = 0;
  /// Reduces the values over the ranks, in place, to what Average says: a linear function of the
  /// ranks' values. All ranks call it equally often with the same names and sizes.
  virtual void reduce(std::vector<StageValues>& list) const = 0;
};

/// A hook that changes what is reduced, and passes that to the hooks after it: PowerSGD.
class RAMET_API ReduceStage : public CommStage {
 public:
  /// Replaces each value of the list by its reduction; it may write to the values at any time. An
  /// exception ends the group. So does a value of another size or dtype that it leaves or passes
  /// on.
  virtual void reduce(std::vector<StageValues>& list, const StageNext& next) = 0;
};

/// The position of the numbers that are encoded.
struct WireKey {
  /// The name in StageValues.
  const std::string& name;
  /// The number of synchronised backwards before this one.
  int64_t step;
  int role;       // the rank; for the sum, the number of ranks
  int64_t first;  // index of the first element, a multiple of block()
};

/// A hook that defines the format in which numbers are sent: fp16, bf16, int8. The last one of a
/// chain.
class RAMET_API WireFormat : public CommStage {
 public:
  /// The number of elements that are encoded together; the last block of a tensor may have fewer. A
  /// power of two, at most 65536.
  virtual int64_t block() const { return 1; }
  /// The encoded size of n elements, if the first one begins a block.
  virtual size_t bytes(int64_t n) const = 0;
  /// in: n elements; out: bytes(n), directly after those of other values. So `out` has no
  /// particular alignment if bytes() may be odd.
  virtual void encode(const float* in, int64_t n, void* out, const WireKey& key) const = 0;
  /// The inverse: decodes n elements from bytes(n) that encode() made.
  virtual void decode(const void* in, int64_t n, float* out) const = 0;
};

}  // namespace distributed
}  // namespace ramet
