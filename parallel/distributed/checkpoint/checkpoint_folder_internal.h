// The files of a folder of checkpoints: names, manifests, data.
//
//   checkpoint-000007-step-42.json                                  manifest
//   checkpoint-000007-step-42-rank-0-of-4-1f3a9c2e.safetensors      data
//
// 7 is a number that counts up: of two saves of one step, and of a step that was gone back to, the
// higher number is the later. The digits at the end are drawn anew for each save, so that a process
// of an earlier run which still writes cannot take a name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/distributed/checkpoint/checkpoint_plan_internal.h"

namespace ramet::distributed::detail {

/// Why a step is not whole.
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

/// Everything in the folder that is a checkpoint's, in increasing order of number. An Error where
/// the folder cannot be read; nothing where there is none.
struct CheckpointFile {
  CheckpointName name;
  std::string file;  // without the folder
  bool is_manifest() const { return file == name.manifest(); }
};
std::vector<CheckpointFile> list_checkpoints(const std::string& folder);
/// Makes the folder where there is none, on disk.
void make_folder(const std::string& folder);
/// Removes all but the newest `keep` steps and what belongs to none. Warns of what it cannot.
void remove_old(const std::string& folder, int keep, const Stage& at);

struct DataFile {
  std::string name;
  uint64_t bytes = 0;
  std::string header;  // digest of the file's first bytes: everything but the tensors'
};

struct Manifest {
  int64_t step = 0;
  int world_size = 0;
  CheckpointValues other;
  std::vector<DataFile> files;
};
void write_manifest(const std::string& path, const Manifest& manifest, const Stage& at);
/// Damaged where it cannot be read, or its text is not what was written.
Manifest read_manifest(const std::string& path);

/// Pieces of what this rank holds, in one file, on disk. Its metadata say which part of a tensor an
/// entry is, and the digest of each kBlock bytes of it.
DataFile write_data(const std::string& folder, const std::string& name,
                    const std::vector<SavedPiece>& pieces,
                    const std::map<std::string, TensorPart>& tensors, const Stage& at);
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr const char* kParts = "ramet.parts";  // in the metadata

}  // namespace ramet::distributed::detail
