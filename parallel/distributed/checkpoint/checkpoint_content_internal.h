// What the ranks of a checkpoint exchange and store in files: keys with tensors and values, small
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

/// Json::parse() and dump(), compiled once: they would be most of the code of a file that calls
/// them.
Json json_of(const std::string& text);
std::string dumped(const Json& json, int indent = -1);

/// The 16 hexadecimal digits of XXH64.
std::string digest_of(const void* data, size_t bytes);
inline std::string digest_of(const std::string& text) {
  return digest_of(text.data(), text.size());
}
/// A copy or view of `t`, row-major, in main memory, without history.
Tensor in_main_memory(const Tensor& t);

/// Is the key the part's name, or the name of something inside the part?
bool inside(const std::string& key, const std::string& part);
/// The name of the part that a key belongs to.
inline std::string part_of(const std::string& key) { return key.substr(0, key.find('.')); }

/// The key of a rank's own value, if the ranks differ: "generators@3" for rank 3's "generators".
inline std::string of_rank(const std::string& part, int rank) {
  return part + "@" + std::to_string(rank);
}
/// The key of an optimizer's state of a parameter: in files "adam.state.fc.weight", and in the
/// optimizer "adam.state3".
inline std::string state_key(const std::string& optimizer, const std::string& parameter) {
  return optimizer + ".state." + parameter;
}
inline std::string state_key(const std::string& optimizer, size_t i) {
  return optimizer + ".state" + std::to_string(i);
}

/// Keys that are not tensors: those of an archive's metadata.
struct CheckpointValues {
  std::map<std::string, Json> values;
  std::set<std::string> undefined;  // tensors
  std::set<std::string> archives;   // nested ones without entries

  Json to_json() const;
  static CheckpointValues of(const Json& json);
  /// Calls f(key, kind) for each.
  void each(const std::function<void(const std::string& key, const char* kind)>& f) const;
};

/// The content of an archive.
struct CheckpointContent {
  std::map<std::string, Tensor> tensors;
  CheckpointValues other;

  static CheckpointContent of(const serialize::OutputArchive& archive);
  serialize::InputArchive to_archive() const;
  /// Renames every key k to f(k); removes keys for which f returns nothing.
  void rename(const std::function<std::optional<std::string>(const std::string&)>& f);
  void rename_part(const std::string& from, const std::string& to);
  /// Takes over what `from` has under this key.
  void take(const std::string& key, const CheckpointContent& from);
  /// A digest of the values and bytes of everything inside the part.
  std::string digest(const std::string& part) const;
};

Json to_json(const std::vector<Cut>& cuts);
std::vector<Cut> cuts_of(const Json& json);
/// The inverse of short_name_of().
ScalarType dtype_named(const std::string& name);

}  // namespace ramet::distributed::detail
