#include <filesystem>
#include <random>

#include "parallel/distributed/checkpoint/checkpoint.h"
#include "parallel/distributed/checkpoint/checkpoint_folder_internal.h"
#include "runtime/base/logging.h"

namespace ramet::distributed {

using detail::agree;
using detail::CheckpointContent;
using detail::CheckpointName;
using detail::dumped;
using detail::Json;
using detail::json_of;

namespace {

constexpr const char* kSave = "DistributedCheckpoint.save";

// Compares what all ranks reported at the begin. Returns the own parts that are equal on all.
std::set<std::string> equal_parts(const std::vector<Json>& ranks) {
  const Json& own = ranks[0].at("own");
  std::set<std::string> same;
  for (const auto& entry : own.items()) same.insert(entry.key());
  for (size_t r = 0; r < ranks.size(); ++r) {
    const Json& other = ranks[r];
    RAMET_CHECK(other.at("step") == ranks[0].at("step"), kSave, "step: got ",
                dumped(other.at("step")), " on rank ", r, ", expected ",
                dumped(ranks[0].at("step")), " as on rank 0");
    for (const auto& [part, digest] : own.items()) {
      RAMET_CHECK(other.at("own").contains(part) && other.at("own").size() == own.size(), kSave,
                  "own parts: got ", dumped(other.at("own")), " on rank ", r,
                  ", expected those of rank 0: ", dumped(own));
      if (other.at("own").at(part) != digest) same.erase(part);
    }
  }
  return same;
}

// The manifest with the files that the ranks wrote. An Error if one of them is not there.
detail::Manifest manifest_of(const std::string& folder, int64_t step, int ranks,
                             const detail::CheckpointValues& other,
                             const std::vector<std::string>& written) {
  detail::Manifest manifest{step, ranks, other, {}};
  for (const std::string& text : written) {
    if (text.empty()) continue;
    const Json f = json_of(text);
    manifest.files.push_back(
        {f[0].get<std::string>(), f[1].get<uint64_t>(), f[2].get<std::string>()});
    std::error_code error;
    const auto path = std::filesystem::path(folder) / manifest.files.back().name;
    const bool there = std::filesystem::file_size(path, error) == manifest.files.back().bytes;
    RAMET_CHECK(there && !error, kSave, "got no file ", path.string(),
                " of another rank, expected a folder that all ranks share");
  }
  return manifest;
}

}  // namespace

void DistributedCheckpoint::save(const std::string& folder, int64_t step,
                                 const SaveOptions& o) const {
  const detail::Stage at = o.at ? o.at : [](const std::string&) {};
  const int rank = group_->rank(), size = group_->size();
  CheckpointContent content;

  // Rank 0 chooses the files' names. Own parts that are equal on all ranks are saved as shared
  // parts.
  const auto begun = agree(*group_, kSave, "begin", o.timeout, [&] {
    RAMET_CHECK(step >= 0, kSave, "step: got ", step, ", expected at least 0");
    RAMET_CHECK(o.keep >= 1, kSave, "keep: got ", o.keep, ", expected at least 1");
    content = collect();
    Json json = {{"step", step}, {"own", Json::object()}};
    for (const std::string& part : own_) json["own"][part] = content.digest(part);
    if (rank == 0) {
      detail::make_folder(folder);
      const auto files = detail::list_checkpoints(folder);
      json["number"] = files.empty() ? 1 : files.back().name.number + 1;
      const unsigned drawn = std::random_device()();
      json["digits"] = detail::digest_of(&drawn, sizeof(drawn)).substr(0, 8);
    }
    return dumped(json);
  });
  std::vector<Json> all;
  for (const std::string& text : begun) all.push_back(json_of(text));
  const Json& first = all[0];
  const CheckpointName name{first.at("number").get<int64_t>(), first.at("step").get<int64_t>()};
  const std::set<std::string> same = equal_parts(all);

  std::map<std::string, TensorPart> tensors;
  std::vector<detail::CheckpointTable> tables;
  const auto packed = agree(*group_, kSave, "tables", o.timeout, [&] {
    for (const std::string& part : own_)
      if (!same.count(part)) content.rename_part(part, detail::of_rank(part, rank));
    detail::CheckpointTable table{{}, content.other};
    for (const auto& [key, tensor] : content.tensors) {
      const TensorPart& part = tensors[key] = described(key, tensor);
      const Tensor dense = detail::in_main_memory(tensor);
      table.tensors[key] = {tensor.scalar_type(), part.sizes, part.cuts,
                            detail::digest_of(dense.data_ptr(), dense.nbytes())};
    }
    return table.pack();
  });
  for (const std::string& text : packed) tables.push_back(detail::CheckpointTable::unpack(text));
  const detail::SavePlan plan = detail::plan_save(tables);  // throws the same on all ranks

  detail::DataFile mine{name.data(rank, size, first.at("digits").get<std::string>()), 0, {}};
  const std::vector<detail::SavedPiece>& pieces = plan.pieces[static_cast<size_t>(rank)];
  std::vector<std::string> written;
  try {
    written = agree(*group_, kSave, "data", o.timeout, [&]() -> std::string {
      if (pieces.empty()) return {};
      mine = detail::write_data(folder, mine.name, pieces, tensors, at);
      return dumped(Json{mine.name, mine.bytes, mine.header});
    });
  } catch (const CommError&) {
    throw;                  // rank 0 may have all ranks' replies, and go on
  } catch (const Error&) {  // no manifest will name the file
    std::error_code ignored;
    std::filesystem::remove(std::filesystem::path(folder) / mine.name, ignored);
    throw;
  }

  agree(*group_, kSave, "manifest", o.timeout, [&]() -> std::string {
    if (rank != 0) return {};
    const detail::Manifest manifest = manifest_of(folder, name.step, size, plan.other, written);
    detail::write_manifest((std::filesystem::path(folder) / name.manifest()).string(), manifest,
                           at);
    try {
      detail::remove_old(folder, o.keep, at);
    } catch (const Error& e) { RAMET_WARN(e.what()); }  // the step is saved even so
    at("removed");
    return {};
  });
}

}  // namespace ramet::distributed
