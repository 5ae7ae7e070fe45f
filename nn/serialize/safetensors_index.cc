// Models that lie in several safetensors files.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "nn/serialize/json_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/source_internal.h"
#include "runtime/base/atomic_file.h"

namespace ramet {
namespace serialize {
namespace {

using Json = nlohmann::json;
constexpr const char* kOp = "load_safetensors_index";
constexpr uint64_t kMaxIndex = 100'000'000;  // as headers
constexpr int kMaxDepth = 256;               // of the metadata, which may hold anything

struct Index {
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::set<std::string>> names;  // of tensors, by file
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

Index read_index(const std::string& path) {
  detail::FileSource in(kOp, path, "an index of safetensors files");
  RAMET_CHECK(in.size() <= kMaxIndex, kOp, "\"", path, "\" is no index: got ", in.size(),
              " bytes, expected at most ", kMaxIndex);
  std::string text(in.size(), ' ');
  in.read(0, text.data(), text.size());
  const Json json = detail::parse_json(kOp, "\"" + path + "\"", text, kMaxDepth);
  RAMET_CHECK(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(),
              kOp, "\"", path, "\" is no index: got no object \"weight_map\", expected one");
  Index index;
  for (const auto& [name, file] : json["weight_map"].items()) {
    const std::string in_file = file.is_string() ? file.get<std::string>() : file.dump();
    RAMET_CHECK(file.is_string() && !in_file.empty() && in_file != "." && in_file != ".." &&
                    in_file.find('/') == std::string::npos &&
                    in_file.find('\0') == std::string::npos,
                kOp, "\"", path, "\": file of \"", name, "\": got \"", in_file,
                "\", expected the name of a file beside it");
    index.names[in_file].insert(name);
  }
  if (!json.contains("metadata")) return index;
  RAMET_CHECK(json["metadata"].is_object(), kOp, "\"", path, "\": metadata: got JSON of type ",
              json["metadata"].type_name(), ", expected an object");
  for (const auto& [key, value] : json["metadata"].items())
    index.metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return index;
}

template <class Load> Safetensors load_index(const std::string& path, const Load& load) {
  Index index = read_index(path);
  const std::string folder = folder_of(path);
  std::map<std::string, Safetensors> mapped;
  for (const auto& [file, names] : index.names) {
    Safetensors& content = mapped[file] = map_safetensors(folder + file);
    std::set<std::string> there;
    for (const auto& entry : content.tensors) {
      RAMET_CHECK(names.count(entry.first), kOp, "\"", path, "\": \"", file, "\" has the tensor \"",
                  entry.first, "\", which the map does not put there");
      there.insert(entry.first);
    }
    for (const std::string& name : names) {
      RAMET_CHECK(there.count(name), kOp, "\"", path, "\": got no tensor \"", name, "\" in \"",
                  file, "\", expected it there");
    }
  }
  Safetensors all;
  all.metadata = std::move(index.metadata);
  for (auto& [file, content] : mapped) {
    for (auto& entry : load(folder + file, std::move(content)).tensors)
      all.tensors.push_back(std::move(entry));
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

}  // namespace

Safetensors load_safetensors_index(const std::string& path, std::optional<Device> device) {
  return load_index(path, [&](const std::string& file, Safetensors mapped) {
    mapped = Safetensors();  // its pages go before others come
    return load_safetensors(file, device);
  });
}

Safetensors map_safetensors_index(const std::string& path, bool verify) {
  return load_index(path, [&](const std::string& file, Safetensors mapped) {
    return verify ? map_safetensors(file, verify) : mapped;
  });
}

void save_safetensors_index(const std::string& path, const Safetensors& content, uint64_t most) {
  constexpr const char* kSave = "save_safetensors_index";
  const std::string ending = ".safetensors.index.json";
  RAMET_CHECK(path.size() > ending.size() && path.ends_with(ending) &&
                  path[path.size() - ending.size() - 1] != '/',
              kSave, "path: got \"", path, "\", expected NAME", ending);
  RAMET_CHECK(most > 0, kSave, "bytes of a file: got 0, expected at least 1");
  RAMET_CHECK(!content.tensors.empty(), kSave, "got no tensors, expected at least one");
  std::set<std::string> names;
  std::vector<Safetensors> parts;
  uint64_t bytes = 0, all = 0;
  for (const auto& [name, tensor] : content.tensors) {
    RAMET_CHECK(tensor.defined(), kSave, "tensor \"", name,
                "\": got an undefined one, expected values");
    RAMET_CHECK(names.insert(name).second, kSave, "name of a tensor: got \"", name,
                "\" twice, expected once");
    const uint64_t size = tensor.nbytes();
    if (parts.empty() || (bytes > 0 && size > most - std::min(bytes, most)))
      parts.emplace_back(), bytes = 0;
    parts.back().tensors.emplace_back(name, tensor);
    bytes += size, all += size;
  }
  const std::string stem = path.substr(0, path.size() - ending.size());
  Json index = {{"metadata", content.metadata}, {"weight_map", Json::object()}};
  index["metadata"]["total_size"] = all;
  std::vector<std::string> files;
  for (size_t i = 0; i < parts.size(); ++i) {
    char number[64];
    std::snprintf(number, sizeof number, "-%05zu-of-%05zu.safetensors", i + 1, parts.size());
    files.push_back(stem + number);
    for (const auto& entry : parts[i].tensors)
      index["weight_map"][entry.first] = files[i].substr(folder_of(files[i]).size());
  }
  std::string text;
  try {
    text = index.dump(2) + "\n";
  } catch (const Json::exception& e) {
    fail(kSave, "names and metadata: expected valid UTF-8 (", e.what(), ")");
  }
  for (size_t i = 0; i < parts.size(); ++i) save_safetensors(files[i], parts[i]);
  write_file_atomically(path, text);
}

}  // namespace serialize
}  // namespace ramet
