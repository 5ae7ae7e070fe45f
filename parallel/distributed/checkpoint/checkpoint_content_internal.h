// What the ranks of a checkpoint tell each other and the files: keys with tensors and values, small
// texts, checksums.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nn/serialize/archive.h"
#include "parallel/distributed/group/agree_internal.h"
#include "parallel/distributed/shard/tensor_part.h"

namespace ramet::distributed::detail {

using Json = nlohmann::json;

/// Json::parse() and dump(): compiled once, for they are most of what a file that calls them takes.
Json json_of(const std::string& text);
std::string dumped(const Json& json, int indent = -1);

/// The 16 hexadecimal digits of XXH64.
std::string digest_of(const void* data, size_t bytes);
inline std::string digest_of(const std::string& text) {
  return digest_of(text.data(), text.size());
}
/// Row-major in main memory, without history.
Tensor in_main_memory(const Tensor& t);

/// Is it the part's name, or the name of something inside the part?
bool inside(const std::string& key, const std::string& part);
/// The name of the part that a key belongs to.
inline std::string part_of(const std::string& key) { return key.substr(0, key.find('.')); }

/// What rank 3 has under "generators", where the ranks differ: "generators@3".
inline std::string of_rank(const std::string& part, int rank) {
  return part + "@" + std::to_string(rank);
}
/// What an optimizer's state of a parameter is saved under, "adam.state.fc.weight", and what the
/// optimizer calls it, "adam.state3".
inline std::string state_key(const std::string& optimizer, const std::string& parameter) {
  return optimizer + ".state." + parameter;
}
inline std::string state_key(const std::string& optimizer, size_t i) {
  return optimizer + ".state" + std::to_string(i);
}

/// Keys that are no tensors: those of an archive's metadata.
struct CheckpointValues {
  std::map<std::string, Json> values;
  std::set<std::string> undefined;  // tensors
  std::set<std::string> archives;   // nested ones without entries

  Json to_json() const;
  static CheckpointValues of(const Json& json);
  /// Calls f(key, kind) for each.
  void each(const std::function<void(const std::string& key, const char* kind)>& f) const;
};

/// An archive as what it is made of.
struct CheckpointContent {
  std::map<std::string, Tensor> tensors;
  CheckpointValues other;

  static CheckpointContent of(const serialize::OutputArchive& archive);
  serialize::InputArchive to_archive() const;
  /// Every key k becomes f(k); keys that f gives nothing for go.
  void rename(const std::function<std::optional<std::string>(const std::string&)>& f);
  void rename_part(const std::string& from, const std::string& to);
  /// Takes over what `from` has under this key.
  void take(const std::string& key, const CheckpointContent& from);
  /// Values and bytes of everything inside the part.
  std::string digest(const std::string& part) const;
};

Json to_json(const std::vector<Cut>& cuts);
std::vector<Cut> cuts_of(const Json& json);
/// From short_name_of().
ScalarType dtype_named(const std::string& name);

}  // namespace ramet::distributed::detail
