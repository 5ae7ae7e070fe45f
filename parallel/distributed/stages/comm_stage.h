// What stands between the gradients of the ranks and their mean in DistributedDataParallel: the
// interfaces of communication stages, for those who write one. stages.h has ours.
//
// Note [Communication stages]
// A bucket's gradients go through a chain of stages, in the order in which they were registered.
// There are three kinds:
//   RouteStage   over which ranks this step's gradients are reduced
//   ReduceStage  what is reduced in a gradient's place: its factors, say. It hands that on to the
//                stages after it, as often as it likes
//   WireFormat   how numbers travel. The last one of the chain is what is sent; formats before it
//                round what they are given
// The whole chain runs on the group's thread as one operation a bucket, beside the backward, all
// ranks in one order. Stages work on float32: gradients of other dtypes are converted on the way in
// and out.
//
// Sums. Each rank's numbers are encoded once, decoded where they are added, and added in float32
// from left to right by rank: the same bits on all ranks. Two ranks send each other everything.
// Three and more have an owner for each part, whose mean is encoded once more; every rank, the
// owner too, takes the decoded mean. What travels is never larger than the largest contribution:
// a mean is divided after the float32 sum and before it is encoded, a sum (Average::sum) travels as
// the mean and is multiplied back, weights (Average::weighted) are applied behind the decoder. One
// rank alone sends nothing and rounds nothing.
//
// What a parameter's gradient becomes does not depend on the other parameters of its bucket: parts
// begin at the formats' blocks, blocks and random numbers are counted from the parameter's start.
// So a run may go on with other buckets.
//
// After a failure gradients are as GradientReducer leaves them, and no state of the failed bucket
// has changed; the group has ended.
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

/// Where a stage is registered.
struct StageSetting {
  /// The module's group.
  ProcessGroup& group;
  /// Full names and sizes of the module's parameters.
  const std::map<std::string, std::vector<int64_t>>& parameters;
};

/// One object serves one DistributedDataParallel at a time, on one rank. Its functions are called
/// by one thread at a time.
class RAMET_API CommStage {
 public:
  virtual ~CommStage();
  /// Kind and settings, as in "int8(block 256, seed 1)": the same on all ranks.
  virtual std::string description() const = 0;
  /// Do reduced gradients have the bits that they would have without it?
  virtual bool lossless() const = 0;
  /// Of these there is one in a chain.
  virtual bool exclusive() const { return false; }
  /// When it is registered, with nothing remembered: an Error where it cannot work.
  virtual void attach(const StageSetting& setting);
  /// What this rank has to remember, for checkpoints. Keys are "FULL NAME OF THE PARAMETER.what".
  virtual std::map<std::string, Tensor> state() const;
  /// All of it is replaced. An Error, and nothing changed, where it cannot be of these parameters.
  virtual void load_state(const std::map<std::string, Tensor>& state);

 private:
  friend class CommStages;
  bool registered_ = false;
};

/// A stage that says which ranks reduce a step's gradients: post-local SGD.
class RAMET_API RouteStage : public CommStage {
 public:
  /// The group of step number `step`; null: the module's own. This rank is one of its ranks.
  virtual std::shared_ptr<ProcessGroup> group(int64_t step) const = 0;
};

/// What is reduced under one name: a gradient, or what a stage made of it.
struct StageValues {
  std::string name;              // of the parameter; a stage appends to it
  Tensor values;                 // float32, contiguous, in host memory; undefined values where this
                                 // rank is not present
  std::vector<bool> present_on;  // [rank], one of them at least: the others are passed over
};

/// The stages after a ReduceStage.
class RAMET_API StageNext {
 public:
  virtual ~StageNext();
  /// This rank among those that reduce, and how many they are:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Synchronised backwards before this one.
  virtual int64_t step() const = 0;
  /// Reduces the values over the ranks, in place, to what Average says: a linear function of the
  /// ranks' values. All ranks call it equally often with the same names and sizes.
  virtual void reduce(std::vector<StageValues>& list) const = 0;
};

/// A stage that changes what is reduced, and hands it on to those after it: PowerSGD.
class RAMET_API ReduceStage : public CommStage {
 public:
  /// Replaces each value of the list, which it may write into at any time, by its reduction. An
  /// exception ends the group, as does a value of another size or dtype that it leaves or hands on.
  virtual void reduce(std::vector<StageValues>& list, const StageNext& next) = 0;
};

/// Where the numbers that are encoded stand.
struct WireKey {
  /// What StageValues calls them.
  const std::string& name;
  /// Synchronised backwards before this one.
  int64_t step;
  int role;       // the rank, or the number of ranks: the sum
  int64_t first;  // index of the first one, a multiple of block()
};

/// A stage that says how numbers travel: fp16, bf16, int8. The last one of a chain.
class RAMET_API WireFormat : public CommStage {
 public:
  /// Elements that are encoded together; the last ones of a tensor may be fewer. A power of two, at
  /// most 65536.
  virtual int64_t block() const { return 1; }
  /// Of n encoded elements, the first of which begins a block.
  virtual size_t bytes(int64_t n) const = 0;
  /// in: n elements; out: bytes(n), behind those of other values without a gap: at an address of no
  /// particular alignment where bytes() gives odd numbers.
  virtual void encode(const float* in, int64_t n, void* out, const WireKey& key) const = 0;
  /// The other way: n elements, of bytes(n) as encode() made them.
  virtual void decode(const void* in, int64_t n, float* out) const = 0;
};

}  // namespace distributed
}  // namespace ramet
