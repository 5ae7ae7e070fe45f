// The files of a folder of checkpoints: names, manifests, data.
//
//   checkpoint-000007-step-42.json                                  manifest
//   checkpoint-000007-step-42-rank-0-of-4-1f3a9c2e.safetensors      data
//
// 7 is a number that counts up. A step may be saved twice, or a run may go back to an earlier step.
// Then the higher number is the later one. The digits at the end are drawn anew for each save. So a
// process of an earlier run that still writes cannot take one of these names.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/distributed/checkpoint/checkpoint_plan_internal.h"

namespace ramet::distributed::detail {

/// Says why a step is not whole.
class Damaged final : public Error {
 public:
  using Error::Error;
};

using Stage = std::function<void(const std::string& stage)>;

struct CheckpointName {
  int64_t number = 0, step = 0;
  std::string stem() const;
  std::string manifest() const { return stem() + ".json"; }
  std::string data(int rank, int ranks, const std::string& digits) const;
};

/// All checkpoint files in the folder, in increasing order of number. An Error if the folder cannot
/// be read; nothing if there is no folder.
struct CheckpointFile {
  CheckpointName name;
  std::string file;  // without the folder
  bool is_manifest() const { return file == name.manifest(); }
};
std::vector<CheckpointFile> list_checkpoints(const std::string& folder);
/// Creates the folder on disk if it is missing.
void make_folder(const std::string& folder);
/// Removes all but the newest `keep` steps, and files that belong to no step. Warns of files that
/// it cannot remove.
void remove_old(const std::string& folder, int keep, const Stage& at);

struct DataFile {
  std::string name;
  uint64_t bytes = 0;
  std::string header;  // digest of the file's first bytes: all but the tensors
};

struct Manifest {
  int64_t step = 0;
  int world_size = 0;
  CheckpointValues other;
  std::vector<DataFile> files;
};
void write_manifest(const std::string& path, const Manifest& manifest, const Stage& at);
/// Throws Damaged if it cannot be read, or if its text is not what was written.
Manifest read_manifest(const std::string& path);

/// Writes pieces of what this rank holds into one file, on disk. The file's metadata say which part
/// of a tensor an entry is, and give the digest of each kBlock bytes of it.
DataFile write_data(const std::string& folder, const std::string& name,
                    const std::vector<SavedPiece>& pieces,
                    const std::map<std::string, TensorPart>& tensors, const Stage& at);
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr const char* kParts = "ramet.parts";  // the key in the metadata

}  // namespace ramet::distributed::detail
