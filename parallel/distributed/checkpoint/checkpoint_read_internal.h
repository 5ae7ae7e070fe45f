// Reads a step: finds its tensors in the files, and reads parts of them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "parallel/distributed/checkpoint/checkpoint_folder_internal.h"

namespace ramet::distributed::detail {

/// Thread safety: const functions.
class StoredStep {
 public:
  struct Piece {
    std::string file;
    uint64_t offset;            // in the file
    std::vector<PartRun> runs;  // which elements of the tensor are there
    int64_t bytes;
    std::string digests;  // of each kBlock bytes
  };
  struct Stored {
    ScalarType dtype = ScalarType::Undefined;
    std::vector<int64_t> sizes;  // of the whole tensor
    std::vector<Piece> pieces;
  };

  /// Reads manifest and headers. Throws Damaged if they, or the files' sizes, are not what was
  /// written.
  StoredStep(const std::string& folder, const CheckpointName& name);
  const Manifest& manifest() const { return manifest_; }
  const std::map<std::string, Stored>& tensors() const { return tensors_; }
  /// Reads the part of the tensor `name` that `cuts` describe, as a tensor of this shape in main
  /// memory. Throws Damaged if a checksum is wrong or an element is missing.
  Tensor read(const std::string& name, const std::vector<Cut>& cuts,
              const std::vector<int64_t>& shape) const;

 private:
  void read_header(const DataFile& file);
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace ramet::distributed::detail
