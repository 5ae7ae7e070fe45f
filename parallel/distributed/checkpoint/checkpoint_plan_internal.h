// Plans which rank writes what of a checkpoint. All ranks compute the same plan from the same
// tables.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "parallel/distributed/checkpoint/checkpoint_content_internal.h"

namespace ramet::distributed::detail {

/// A tensor of a rank, as the other ranks know it.
struct HeldTensor {
  ScalarType dtype;
  std::vector<int64_t> sizes;  // of the whole tensor
  std::vector<Cut> cuts;
  std::string digest;  // of the bytes of the part
};

struct CheckpointTable {
  std::map<std::string, HeldTensor> tensors;  // by key
  CheckpointValues other;

  std::string pack() const;
  static CheckpointTable unpack(const std::string& text);
};

/// Elements [begin, begin + length) of this rank's part of a tensor.
struct SavedPiece {
  std::string name;
  int64_t begin, length;
};

struct SavePlan {
  std::vector<std::vector<SavedPiece>> pieces;  // by rank
  CheckpointValues other;                       // of all ranks
};

/// Plans a save. Data that several ranks hold alike is spread over them by bytes. Tensors of at
/// most kWholeTensor bytes are not divided. An Error if ranks disagree about a tensor or value, or
/// if no rank holds some element.
SavePlan plan_save(const std::vector<CheckpointTable>& tables);
constexpr int64_t kWholeTensor = int64_t{1} << 20;

}  // namespace ramet::distributed::detail
