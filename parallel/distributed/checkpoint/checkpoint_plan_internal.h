// Who writes what of a checkpoint: from tables that all ranks have seen, the same on all of them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "parallel/distributed/checkpoint/checkpoint_content_internal.h"

namespace ramet::distributed::detail {

/// A tensor of a rank, as the others see it.
struct HeldTensor {
  ScalarType dtype;
  std::vector<int64_t> sizes;  // of the whole
  std::vector<Cut> cuts;
  std::string digest;  // of the bytes of the part
};

struct CheckpointTable {
  std::map<std::string, HeldTensor> tensors;  // by key
  CheckpointValues other;

  std::string pack() const;
  static CheckpointTable unpack(const std::string& text);
};

/// Elements [begin, begin + length) of what this rank holds of a tensor.
struct SavedPiece {
  std::string name;
  int64_t begin, length;
};

struct SavePlan {
  std::vector<std::vector<SavedPiece>> pieces;  // by rank
  CheckpointValues other;                       // of all of them
};

/// What several ranks hold alike is spread over them by bytes; tensors of at most
/// kWholeTensor bytes are not divided. An Error where ranks disagree about a tensor or value, or no
/// rank holds some element.
SavePlan plan_save(const std::vector<CheckpointTable>& tables);
constexpr int64_t kWholeTensor = int64_t{1} << 20;

}  // namespace ramet::distributed::detail
