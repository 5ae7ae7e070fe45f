#include "nn/serialize/archive.h"

#include <cmath>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "autograd/grad_mode.h"
#include "nn/serialize/json_internal.h"
#include "nn/serialize/safetensors.h"

namespace ramet {
namespace serialize {

using Json = nlohmann::json;

namespace detail {
struct ArchiveContent {
  std::map<std::string, Tensor> tensors;  // undefined: an undefined tensor was written
  std::map<std::string, IValue> values;
  std::set<std::string> archives;  // nested ones by full key; needed for those without entries
  std::string where = "an archive that nothing was loaded into";  // in errors: "in \"net.pt\""

  bool has_below(const std::string& prefix) const {
    const auto below = [&](const auto& map) {
      const auto it = map.lower_bound(prefix);
      if (it == map.end()) return false;
      if constexpr (std::is_same_v<std::decay_t<decltype(map)>, std::set<std::string>>) {
        return it->compare(0, prefix.size(), prefix) == 0;
      } else {
        return it->first.compare(0, prefix.size(), prefix) == 0;
      }
    };
    return below(tensors) || below(values) || below(archives);
  }
  void erase(const std::string& key) {
    const auto drop = [&](auto& map) {
      for (auto it = map.lower_bound(key); it != map.end();) {
        const std::string* k;
        if constexpr (std::is_same_v<std::decay_t<decltype(map)>, std::set<std::string>>) k = &*it;
        else k = &it->first;
        if (k->compare(0, key.size(), key) != 0) break;
        if (k->size() == key.size() || (*k)[key.size()] == '.') it = map.erase(it);
        else ++it;
      }
    };
    drop(tensors), drop(values), drop(archives);
  }
};
}  // namespace detail

namespace {

constexpr const char* kEntry = "ramet";  // our key in the metadata
constexpr int kMaxDepth = 16;            // of what is there

Json number_to_json(double v) {
  if (std::isnan(v)) return Json{{"double", "nan"}};
  if (std::isinf(v)) return Json{{"double", v > 0 ? "inf" : "-inf"}};
  return v;
}
double number_from_json(const Json& j) {
  if (j.is_number()) return j.get<double>();
  const std::string text = j.at("double").get<std::string>();
  RAMET_CHECK(text == "nan" || text == "inf" || text == "-inf", "InputArchive", "number: got \"",
              text, "\", expected nan, inf or -inf");
  return text == "nan" ? std::nan("") : text == "inf" ? INFINITY : -INFINITY;
}

// Tensors inside a value were written as entries of their own.
Json value_to_json(const IValue& v) {
  if (v.isDouble()) return number_to_json(v.toDouble());
  if (v.isInt()) return v.toInt();
  if (v.isBool()) return v.toBool();
  if (v.isString()) return v.toStringRef();
  if (v.isIntList()) return Json{{"ints", v.toIntVector()}};
  if (v.isTensorList()) return Json{{"tensors", v.toTensorVector().size()}};
  if (v.isDoubleList()) {
    Json list = Json::array();
    for (double d : v.toDoubleVector()) list.push_back(number_to_json(d));
    return Json{{"doubles", list}};
  }
  return nullptr;
}
IValue value_from_json(const std::string& key, const Json& j,
                       const detail::ArchiveContent& content) {
  if (j.is_null()) return {};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number_float()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.contains("double")) return number_from_json(j);
  if (j.contains("ints")) return j["ints"].get<std::vector<int64_t>>();
  if (j.contains("doubles")) {
    std::vector<double> list;
    for (const Json& d : j["doubles"]) list.push_back(number_from_json(d));
    return list;
  }
  std::vector<Tensor> list;
  for (size_t i = 0, n = j.at("tensors").get<size_t>(); i < n; ++i) {
    const auto it = content.tensors.find(key + "." + std::to_string(i));
    RAMET_CHECK(it != content.tensors.end(), "InputArchive", "list \"", key, "\": got no tensor ",
                i, ", expected ", n);
    list.push_back(it->second);
  }
  return list;
}

Safetensors to_file(const detail::ArchiveContent& content) {
  Safetensors file;
  Json values = Json::object(), undefined = Json::array(), archives = Json::array();
  for (const auto& [key, tensor] : content.tensors) {
    if (tensor.defined()) file.tensors.emplace_back(key, tensor);
    else undefined.push_back(key);
  }
  for (const auto& [key, value] : content.values) values[key] = value_to_json(value);
  for (const std::string& key : content.archives)
    if (!content.has_below(key + ".")) archives.push_back(key);
  Json about = {{"format", 1}};
  if (!values.empty()) about["values"] = std::move(values);
  if (!undefined.empty()) about["undefined"] = std::move(undefined);
  if (!archives.empty()) about["archives"] = std::move(archives);
  try {
    file.metadata[kEntry] = about.dump();
  } catch (const Json::exception& e) {
    fail("OutputArchive", "keys and texts: expected valid UTF-8 (", e.what(), ")");
  }
  return file;
}

std::shared_ptr<const detail::ArchiveContent> from_file(Safetensors file, const std::string& name) {
  auto content = std::make_shared<detail::ArchiveContent>();
  content->where = "\"" + name + "\"";
  for (auto& [key, tensor] : file.tensors) content->tensors[key] = std::move(tensor);
  const auto entry = file.metadata.find(kEntry);
  if (entry == file.metadata.end()) return content;  // another program's file: tensors only
  const Json about =
      detail::parse_json("InputArchive", "metadata of \"" + name + "\"", entry->second, kMaxDepth);
  try {
    RAMET_CHECK(about.at("format") == 1, "InputArchive", "format of \"", name, "\": got ",
                about.at("format").dump(), ", expected 1");
    for (const Json& key : about.value("undefined", Json::array()))
      content->tensors[key.get<std::string>()];
    for (const Json& key : about.value("archives", Json::array()))
      content->archives.insert(key.get<std::string>());
    const Json values = about.value("values", Json::object());
    for (const auto& [key, value] : values.items())
      content->values[key] = value_from_json(key, value, *content);
  } catch (const Json::exception& e) {
    fail("InputArchive", "metadata of \"", name, "\" is damaged (", e.what(), ")");
  }
  return content;
}

}  // namespace

// ---- OutputArchive ------------------------------------------------------------------------------

OutputArchive::OutputArchive() : content_(std::make_unique<detail::ArchiveContent>()) {}
OutputArchive::OutputArchive(OutputArchive&&) noexcept = default;
OutputArchive& OutputArchive::operator=(OutputArchive&&) noexcept = default;
OutputArchive::~OutputArchive() = default;

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  content_->erase(key);
  content_->tensors[key] = tensor.defined() ? tensor.detach() : Tensor();
}

void OutputArchive::write(const std::string& key, const IValue& value) {
  if (value.isTensor()) return write(key, value.toTensor());
  const bool typed = value.isIntList() || value.isDoubleList() || value.isTensorList();
  RAMET_CHECK(
      !value.isGenericDict() && !value.isTuple() && !value.isOpaque() && (typed || !value.isList()),
      "OutputArchive", "value under \"", key, "\": got a ",
      value.isGenericDict() ? "dictionary"
      : value.isTuple()     ? "tuple"
      : value.isOpaque()    ? "value that a file has and this library cannot hold"
                            : "list of any values",
      ", expected a number, a text, a tensor or a list of numbers or tensors (nested archives "
      "are dictionaries)");
  content_->erase(key);
  content_->values[key] = value;
  if (!value.isTensorList()) return;
  const std::vector<Tensor>& list = value.toTensorVector();
  for (size_t i = 0; i < list.size(); ++i) {
    content_->tensors[key + "." + std::to_string(i)] =
        list[i].defined() ? list[i].detach() : Tensor();
  }
}

void OutputArchive::write(const std::string& key, OutputArchive& nested) {
  RAMET_CHECK(&nested != this, "OutputArchive", "nested archive \"", key,
              "\": got the archive itself");
  content_->erase(key);
  for (const auto& [k, tensor] : nested.content_->tensors)
    content_->tensors[key + "." + k] = tensor;
  for (const auto& [k, value] : nested.content_->values) content_->values[key + "." + k] = value;
  for (const std::string& k : nested.content_->archives) content_->archives.insert(key + "." + k);
  content_->archives.insert(key);
}

void OutputArchive::save_to(const std::string& filename) {
  save_safetensors(filename, to_file(*content_));
}
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& write) {
  save_safetensors(write, to_file(*content_));
}
void OutputArchive::save_to(std::ostream& stream) {
  RAMET_CHECK(stream.good(), "OutputArchive",
              "save_to: got a stream that has failed, expected one that can be written (was the "
              "file opened?)");
  save_to([&](const void* data, size_t bytes) {
    stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    return stream.good() ? bytes : size_t{0};
  });
}

Safetensors OutputArchive::to_safetensors() const { return to_file(*content_); }

// ---- InputArchive -------------------------------------------------------------------------------

InputArchive::InputArchive() : content_(std::make_shared<detail::ArchiveContent>()) {}
InputArchive::InputArchive(InputArchive&&) noexcept = default;
InputArchive& InputArchive::operator=(InputArchive&&) noexcept = default;
InputArchive::~InputArchive() = default;

void InputArchive::load_from(Safetensors content, const std::string& name) {
  content_ = from_file(std::move(content), name);
  prefix_.clear();
}
void InputArchive::load_from(const std::string& filename, std::optional<Device> device) {
  load_from(load_safetensors(filename, device), filename);
}
void InputArchive::load_from(const char* data, size_t size, std::optional<Device> device) {
  load_from(load_safetensors(data, size, "memory", device), "memory");
}
void InputArchive::load_from(std::istream& stream, std::optional<Device> device) {
  RAMET_CHECK(
      stream.good(), "InputArchive",
      "load_from: got a stream that has failed or ended, expected one that can be read (was "
      "the file opened?)");
  const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  load_from(load_safetensors(bytes.data(), bytes.size(), "stream", device), "stream");
}
void InputArchive::load_from(const std::function<size_t(uint64_t, void*, size_t)>& read,
                             const std::function<size_t()>& size, std::optional<Device> device) {
  std::string bytes(size(), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const size_t got = read(at, &bytes[at], bytes.size() - at);
    RAMET_CHECK(got > 0 && got <= bytes.size() - at, "InputArchive", "read function: got ", got,
                " bytes at ", at, ", expected 1 to ", bytes.size() - at);
    at += got;
  }
  load_from(bytes.data(), bytes.size(), device);
}

namespace {
[[noreturn]] void missing(const detail::ArchiveContent& content, const std::string& key,
                          const char* what) {
  fail("InputArchive", "no ", what, " under the key \"", key, "\" in ", content.where);
}
void check_dtype(const detail::ArchiveContent& content, const std::string& key, const Tensor& into,
                 const Tensor& from) {
  RAMET_CHECK(into.scalar_type() == from.scalar_type(), "InputArchive", "dtype of \"", key,
              "\": got ", describe(from), " in ", content.where, ", expected ", describe(into));
}
}  // namespace

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  const auto it = content_->tensors.find(prefix_ + key);
  if (it == content_->tensors.end()) return false;
  NoGradGuard no_grad;
  const Tensor& from = it->second;
  if (!from.defined()) {
    tensor = Tensor();
  } else if (!tensor.defined()) {
    tensor = from.clone();  // a reader may write into what it gets, and there may be another reader
  } else {
    check_dtype(*content_, prefix_ + key, tensor, from);
    if (same_sizes(tensor, from)) tensor.copy_(from);
    else tensor.set_data(from.to(tensor.device(), false, /*copy=*/true));
  }
  return true;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) {
  if (!try_read(key, tensor, is_buffer)) missing(*content_, prefix_ + key, "tensor");
}

void InputArchive::read_values(const std::string& key, const Tensor& tensor) {
  const std::string full = prefix_ + key;
  const auto it = content_->tensors.find(full);
  if (it == content_->tensors.end()) missing(*content_, full, "tensor");
  const Tensor& from = it->second;
  RAMET_CHECK(tensor.defined() && from.defined(), "InputArchive", "\"", full, "\": got ",
              from.defined() ? "values" : "an undefined tensor", " in ", content_->where,
              ", expected ", tensor.defined() ? describe(tensor) : "an undefined tensor");
  RAMET_CHECK(same_sizes(tensor, from), "InputArchive", "shape of \"", full, "\": got ",
              describe(from), " in ", content_->where, ", expected ", describe(tensor));
  check_dtype(*content_, full, tensor, from);
  NoGradGuard no_grad;
  tensor.copy_(from);
}

bool InputArchive::try_read(const std::string& key, IValue& value) {
  const auto it = content_->values.find(prefix_ + key);
  if (it != content_->values.end()) {
    value = it->second;
    return true;
  }
  Tensor tensor;
  if (!try_read(key, tensor)) return false;
  value = tensor;
  return true;
}
void InputArchive::read(const std::string& key, IValue& value) {
  if (!try_read(key, value)) missing(*content_, prefix_ + key, "value");
}

bool InputArchive::try_read(const std::string& key, InputArchive& archive) {
  const std::string full = prefix_ + key;
  if (content_->archives.count(full) == 0 && !content_->has_below(full + ".")) return false;
  archive.content_ = content_;
  archive.prefix_ = full + ".";
  return true;
}
void InputArchive::read(const std::string& key, InputArchive& archive) {
  if (!try_read(key, archive)) missing(*content_, prefix_ + key, "archive");
}

std::vector<std::string> InputArchive::keys() {
  std::set<std::string> found;
  const auto add = [&](const std::string& full) {
    if (full.size() <= prefix_.size() || full.compare(0, prefix_.size(), prefix_) != 0) return;
    found.insert(full.substr(prefix_.size(), full.find('.', prefix_.size()) - prefix_.size()));
  };
  for (const auto& entry : content_->tensors) add(entry.first);
  for (const auto& entry : content_->values) add(entry.first);
  for (const std::string& key : content_->archives) add(key);
  return {found.begin(), found.end()};
}

}  // namespace serialize

}  // namespace ramet
