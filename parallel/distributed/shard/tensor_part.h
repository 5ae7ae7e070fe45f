// Parts of tensors: what a rank holds of a tensor that is spread over ranks, and which elements of
// the whole those are.
//
// Cuts describe a part; they are applied one after the other. Tensor parallelism keeps columns of a
// matrix. Sharding then keeps a piece of that result, laid flat. A cut keeps elements in their
// order. So a part is an increasing list of runs Of the whole tensor.'s elements, numbered
// row-major.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet::distributed {

/// One step from a tensor to a part of it. The input, row-major, is viewed as [outer, extent,
/// inner]; the cut keeps [:, begin : begin + length, :]. A slice of dim d: outer = product of sizes
/// before d, inner = product after. A piece of the flattened tensor: outer = inner = 1.
struct Cut {
  int64_t outer = 1, extent = 0, inner = 1, begin = 0, length = 0;
};
inline bool operator==(const Cut& a, const Cut& b) {
  return a.outer == b.outer && a.extent == b.extent && a.inner == b.inner && a.begin == b.begin &&
         a.length == b.length;
}

/// The part that this rank holds of a tensor that is spread over ranks. No cuts: all of it
/// (replicated).
struct TensorPart {
  std::string name;            // The full name, the same on all ranks.
  std::vector<int64_t> sizes;  // of the whole tensor
  std::vector<Cut> cuts;  // applied one after the other (tensor parallel first, then flat shards)
  Tensor local;           // row-major elements of the part, any shape; numel may be 0
};

/// Elements [local, local + length) of a part are [whole, whole + length) of the whole tensor.
struct PartRun {
  int64_t whole = 0, local = 0, length = 0;
};
inline bool operator==(const PartRun& a, const PartRun& b) {
  return a.whole == b.whole && a.local == b.local && a.length == b.length;
}

/// The number of elements of a tensor of these sizes; 1 for no sizes.
RAMET_API int64_t elements_of(const std::vector<int64_t>& sizes);
/// The number of elements that the cuts leave. An Error naming `name` if a size is negative, or if
/// a cut does not fit the result of the one before it.
RAMET_API int64_t elements_of(const std::string& name, const std::vector<int64_t>& sizes,
                              const std::vector<Cut>& cuts);
/// The part's runs, in increasing order. They are as few as possible, and none is empty. Errors as
/// above.
RAMET_API std::vector<PartRun> runs_of(const std::string& name, const std::vector<int64_t>& sizes,
                                       const std::vector<Cut>& cuts);
/// A range to copy from one part to another part of the same tensor. Elements [from, from + length)
/// of the first are [to, to + length) of the second. Lists are in increasing order of both.
struct CopyRun {
  int64_t from = 0, to = 0, length = 0;
};
/// The elements that both parts have.
RAMET_API std::vector<CopyRun> intersect(const std::vector<PartRun>& from,
                                         const std::vector<PartRun>& to);
/// The runs of `part` without the elements that `other` has too.
RAMET_API std::vector<PartRun> subtract(const std::vector<PartRun>& part,
                                        const std::vector<PartRun>& other);

}  // namespace ramet::distributed
