// Parts of tensors: what a rank holds of a tensor that is spread over ranks, and where its elements
// lie in the whole.
//
// A part is described by cuts, applied one after the other: tensor parallelism keeps columns of a
// matrix, sharding keeps a piece of what that left, laid flat. A cut keeps elements in their order,
// so a part is an increasing list of runs of the whole tensor's elements, numbered row-major.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet::distributed {

/// One step from a tensor to a part of it: what was there, row-major, seen as [outer, extent,
/// inner]; kept are [:, begin : begin + length, :]. A slice of dim d: outer = product of sizes
/// before d, inner = product after. A piece of the flattened tensor: outer = inner = 1.
struct Cut {
  int64_t outer = 1, extent = 0, inner = 1, begin = 0, length = 0;
};
inline bool operator==(const Cut& a, const Cut& b) {
  return a.outer == b.outer && a.extent == b.extent && a.inner == b.inner && a.begin == b.begin &&
         a.length == b.length;
}

/// What this rank holds of a tensor that is spread over ranks. No cuts: all of it (replicated).
struct TensorPart {
  std::string name;            // the full name, the same on all ranks
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

/// Elements of a tensor of these sizes; 1 for none.
RAMET_API int64_t elements_of(const std::vector<int64_t>& sizes);
/// Elements that the cuts leave. An Error naming `name` where a size is negative, or a cut does not
/// fit what the one before it left.
RAMET_API int64_t elements_of(const std::string& name, const std::vector<int64_t>& sizes,
                              const std::vector<Cut>& cuts);
/// The part's runs: in increasing order, as few as there can be, none of them empty. Errors as
/// above.
RAMET_API std::vector<PartRun> runs_of(const std::string& name, const std::vector<int64_t>& sizes,
                                       const std::vector<Cut>& cuts);
/// What to copy from a part to another one of the same tensor: elements [from, from + length) of
/// the first are [to, to + length) of the second. In increasing order of both.
struct CopyRun {
  int64_t from = 0, to = 0, length = 0;
};
/// What two parts have in common.
RAMET_API std::vector<CopyRun> intersect(const std::vector<PartRun>& from,
                                         const std::vector<PartRun>& to);
/// The runs of `part` without the elements that `other` has too.
RAMET_API std::vector<PartRun> subtract(const std::vector<PartRun>& part,
                                        const std::vector<PartRun>& other);

}  // namespace ramet::distributed
