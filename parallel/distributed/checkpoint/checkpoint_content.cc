#include "parallel/distributed/checkpoint/checkpoint_content_internal.h"

#include <cstdio>

#include "autograd/grad_mode.h"
#include "nn/serialize/safetensors.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed::detail {

Json json_of(const std::string& text) {
  // The writer of values recurses once for each level. Levels deeper than a checkpoint has are left
  // out here; the code that reads the result detects that.
  return Json::parse(text, [](int depth, Json::parse_event_t, Json&) { return depth <= 64; });
}
std::string dumped(const Json& json, int indent) { return json.dump(indent); }

std::string digest_of(const void* data, size_t bytes) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(XXH64(data, bytes, 0)));
  return digits;
}

Tensor in_main_memory(const Tensor& t) {
  const NoGradGuard off;
  return (t.is_cpu() ? t : t.to(Device(kCPU, 0))).detach().contiguous();
}

bool inside(const std::string& key, const std::string& part) {
  return key.compare(0, part.size(), part) == 0 &&
         (key.size() == part.size() || key[part.size()] == '.');
}

namespace {

// The key of an archive's metadata in a file (nn/serialize/archive.h).
constexpr const char* kArchive = "ramet";

}  // namespace

Json CheckpointValues::to_json() const {
  return {{"format", 1},
          {"values", Json(values)},
          {"undefined", Json(undefined)},
          {"archives", Json(archives)}};
}

CheckpointValues CheckpointValues::of(const Json& json) {
  CheckpointValues v;
  v.values = json.value("values", Json::object()).get<std::map<std::string, Json>>();
  v.undefined = json.value("undefined", Json::array()).get<std::set<std::string>>();
  v.archives = json.value("archives", Json::array()).get<std::set<std::string>>();
  return v;
}

void CheckpointValues::each(
    const std::function<void(const std::string& key, const char* kind)>& f) const {
  for (const auto& [key, value] : values) f(key, "a value");
  for (const std::string& key : undefined) f(key, "an undefined tensor");
  for (const std::string& key : archives) f(key, "an empty archive");
}

CheckpointContent CheckpointContent::of(const serialize::OutputArchive& archive) {
  serialize::Safetensors file = archive.to_safetensors();
  CheckpointContent content;
  for (auto& [key, tensor] : file.tensors) content.tensors[key] = std::move(tensor);
  content.other = CheckpointValues::of(json_of(file.metadata.at(kArchive)));
  return content;
}

serialize::InputArchive CheckpointContent::to_archive() const {
  serialize::Safetensors file;
  file.tensors.assign(tensors.begin(), tensors.end());
  file.metadata[kArchive] = dumped(other.to_json());
  serialize::InputArchive archive;
  archive.load_from(std::move(file), "checkpoint");
  return archive;
}

void CheckpointContent::rename(
    const std::function<std::optional<std::string>(const std::string&)>& f) {
  const auto each = [&f](auto& from, const auto& put) {
    auto before = std::move(from);
    from = {};
    for (auto& entry : before) put(entry);
  };
  const auto map = [&](auto& from) {
    each(from, [&](auto& entry) {
      if (const auto key = f(entry.first)) from[*key] = std::move(entry.second);
    });
  };
  const auto set = [&](std::set<std::string>& from) {
    each(from, [&](const std::string& entry) {
      if (const auto key = f(entry)) from.insert(*key);
    });
  };
  map(tensors), map(other.values), set(other.undefined), set(other.archives);
}

void CheckpointContent::rename_part(const std::string& from, const std::string& to) {
  rename([&](const std::string& key) -> std::optional<std::string> {
    return inside(key, from) ? to + key.substr(from.size()) : key;
  });
}

void CheckpointContent::take(const std::string& key, const CheckpointContent& from) {
  if (const auto found = from.tensors.find(key); found != from.tensors.end())
    tensors[key] = found->second;
  if (const auto found = from.other.values.find(key); found != from.other.values.end())
    other.values[key] = found->second;
  if (from.other.undefined.count(key)) other.undefined.insert(key);
  if (from.other.archives.count(key)) other.archives.insert(key);
}

std::string CheckpointContent::digest(const std::string& part) const {
  std::string text;
  for (const auto& [key, tensor] : tensors) {
    if (!inside(key, part)) continue;
    const Tensor dense = in_main_memory(tensor);
    text += ramet::detail::join(key, " ", dense.scalar_type(), dense.sizes(), " ",
                                digest_of(dense.data_ptr(), dense.nbytes()), "\n");
  }
  for (const auto& [key, value] : other.values)
    if (inside(key, part)) text += key + "=" + dumped(value) + "\n";
  for (const std::string& key : other.undefined)
    if (inside(key, part)) text += key + " undefined\n";
  return digest_of(text);
}

Json to_json(const std::vector<Cut>& cuts) {
  Json list = Json::array();
  for (const Cut& c : cuts) list.push_back({c.outer, c.extent, c.inner, c.begin, c.length});
  return list;
}

std::vector<Cut> cuts_of(const Json& json) {
  std::vector<Cut> cuts;
  for (const Json& c : json)
    cuts.push_back({c.at(0).get<int64_t>(), c.at(1).get<int64_t>(), c.at(2).get<int64_t>(),
                    c.at(3).get<int64_t>(), c.at(4).get<int64_t>()});
  return cuts;
}

ScalarType dtype_named(const std::string& name) {
  for (int i = 0; i < kScalarTypes; ++i)
    if (short_name_of(static_cast<ScalarType>(i)) == name) return static_cast<ScalarType>(i);
  fail("DistributedCheckpoint", "dtype: got \"", name, "\", which this library does not have");
}

}  // namespace ramet::distributed::detail
