#include "nn/formats/pytorch/pt.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>
#include <vector>

#include "nn/formats/pytorch/torch_optimizer_internal.h"
#include "nn/formats/pytorch/torch_storages_internal.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"

namespace ramet {
namespace formats {
namespace {

using detail::Node;
using detail::Pickle;
using detail::Storages;
using detail::ZipReader;
using serialize::detail::FileSource;
using serialize::detail::MemorySource;
using serialize::detail::Source;

constexpr uint64_t kMaxPickle = uint64_t{1} << 30;  // without the tensors' data
// PyTorch deflates no entry. A file deflated by other tools costs some 70 bytes for each of its
// own.
constexpr uint64_t kMostOfAByte = 16, kMostOfAnyFile = uint64_t{1} << 20;
constexpr int kMaxVersion = 10;  // of the zip format, as PyTorch 2.15's
constexpr const char kZip[] = "PK\x03\x04";

bool begins_with(Source& in, const char* start, size_t bytes) {
  char head[16];
  if (in.size() < bytes) return false;
  in.read(0, head, bytes);
  return std::memcmp(head, start, bytes) == 0;
}

// ---- zip ----------------------------------------------------------------------------------------

// The folder in which everything lies, and its "data.pkl".
std::string root_of(const ZipReader& zip) {
  const std::string name = "data.pkl";
  const ZipReader::Entry* found = nullptr;
  for (const ZipReader::Entry& e : zip.entries()) {
    const size_t slash = e.name.find('/');
    if (slash == std::string::npos || e.name.compare(slash + 1, e.name.npos, name) != 0) continue;
    RAMET_CHECK(!found, zip.op(), "\"", zip.file(), "\": got \"", e.name, "\" besides \"",
                found->name, "\", expected one data.pkl");
    found = &e;
  }
  RAMET_CHECK(
      found, zip.op(), "\"", zip.file(),
      "\": got a zip archive without data.pkl, expected one that PyTorch or LibTorch wrote");
  return found->name.substr(0, found->name.size() - name.size());
}

std::string short_text(ZipReader& zip, const std::string& name) {
  const ZipReader::Entry* e = zip.find(name);
  if (!e) return "";
  RAMET_CHECK(e->bytes <= 64, zip.op(), "\"", zip.file(), "\", entry \"", name, "\": got ",
              e->bytes, " bytes, expected at most 64");
  std::string text = zip.text(*e);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

IValue load_zip(ZipReader& zip, std::optional<Device> device) {
  const std::string root = root_of(zip);
  const std::string version = short_text(zip, root + "version");
  RAMET_CHECK(
      version.empty() || (version.size() <= 2 && std::isdigit(version[0]) &&
                          std::isdigit(version.back()) && std::stoi(version) <= kMaxVersion),
      zip.op(), "\"", zip.file(), "\", entry \"", root, "version\": got \"", version,
      "\", expected at most ", kMaxVersion);
  const std::string order = short_text(zip, root + "byteorder");
  RAMET_CHECK(order.empty() || order == "little" || order == "big", zip.op(), "\"", zip.file(),
              "\", entry \"", root, "byteorder\": got \"", order, "\", expected little or big");
  const ZipReader::Entry& data = *zip.find(root + "data.pkl");
  const uint64_t most = std::min(kMaxPickle, kMostOfAnyFile + kMostOfAByte * zip.bytes());
  RAMET_CHECK(data.bytes <= most, zip.op(), "\"", zip.file(), "\", entry \"", data.name, "\": got ",
              data.bytes, " bytes, expected at most ", most, " in a file of ", zip.bytes());
  const std::string text = zip.text(data);
  MemorySource in(text.data(), text.size());
  // TorchScript's archives hold their constants in a separate pickle, those of torch::save() too.
  const bool script = zip.find(root + "constants.pkl") != nullptr;
  Pickle pickle({zip.op(), "\"" + zip.file() + "\", entry \"" + data.name + "\""}, in,
                script ? Pickle::Dialect::kLibTorch : Pickle::Dialect::kPython);
  uint64_t at = 0;
  Node* top = pickle.run(at);
  if (at != text.size())
    pickle.place().bad(at, "got ", text.size() - at, " bytes behind the pickle's end, expected 0");
  // Checks that every storage exists and has its stated length, before the first is read.
  std::vector<const ZipReader::Entry*> entries;
  for (const detail::StorageNote& note : pickle.storages()) {
    const ZipReader::Entry* e = zip.find(root + "data/" + note.key);
    if (!e) pickle.place().bad(note.at, "got no entry \"", root, "data/", note.key, "\"");
    if (e->bytes != note.bytes) {
      pickle.place().bad(note.at, "got ", e->bytes, " bytes in entry \"", e->name, "\", expected ",
                         note.bytes);
    }
    entries.push_back(e);
  }
  Storages storages(pickle, order == "big", device,
                    [&](size_t i, void* to) { zip.read(*entries[i], to); });
  return pickle.value(
      top, [&](const detail::TensorNote& note, uint64_t) { return storages.tensor(note); });
}

// ---- before 1.6 ---------------------------------------------------------------------------------

// The file holds five pickles in a row: a magic number, the version, the writer's machine, the
// object, and the keys of its storages. Then comes each storage, after its number of elements.
IValue load_old(const char* op, const std::string& name, Source& in, std::optional<Device> device) {
  Pickle pickle({op, "\"" + name + "\""}, in, Pickle::Dialect::kPython);
  const auto bad = [&](uint64_t at, const auto&... parts) { pickle.place().bad(at, parts...); };
  uint64_t at = 0;
  const auto* magic = pickle.run(at)->as<detail::NodeLong>();
  if (!magic || magic->bytes != "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
    bad(0, "got a pickle without PyTorch's magic number, expected a file of torch.save()");
  uint64_t begin = at;
  const auto* version = pickle.run(at)->as<int64_t>();
  if (!version || *version != 1001) bad(begin, "got another version, expected 1001");
  begin = at;
  auto* machine = pickle.run(at)->as<detail::NodeDict>();
  const bool* little = nullptr;
  if (machine) {
    for (const auto& [key, value] : machine->items)
      if (key->as<std::string>() && *key->as<std::string>() == "little_endian")
        little = value->as<bool>();
  }
  if (!little) bad(begin, "got no byte order (little_endian), expected it");
  Node* top = pickle.run(at);
  begin = at;
  const auto* keys = pickle.run(at)->as<detail::NodeList>();
  if (!keys) bad(begin, "got no list of storages, expected one");
  // Finds the position of each storage before the first is read.
  std::vector<uint64_t> places(pickle.storages().size());
  std::vector<bool> seen(pickle.storages().size());
  for (Node* key : keys->items) {
    const auto* text = key->as<std::string>();
    const size_t i = text ? pickle.storage_number(*text) : seen.size();
    if (i >= seen.size() || seen[i])
      bad(key->at, "got ", key->kind(),
          " among the storages, expected each that the object has once");
    seen[i] = true;
    const detail::StorageNote& note = pickle.storages()[i];
    if (in.size() - at < 8 || in.size() - at - 8 < note.bytes) {
      bad(at, "got ", in.size() - at, " bytes, expected 8 and the ", note.bytes, " of storage \"",
          note.key, "\"");
    }
    uint64_t count = 0;
    unsigned char head[8];
    in.read(at, head, 8);
    for (int k = 8; k-- > 0;) count = count << 8 | head[*little ? k : 7 - k];
    if (count != note.bytes / note.unit) {
      bad(at, "got ", count, " elements of storage \"", note.key, "\", expected ",
          note.bytes / note.unit);
    }
    places[i] = at + 8;
    at += 8 + note.bytes;
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const detail::StorageNote& note = pickle.storages()[i];
    if (!seen[i]) bad(note.at, "got no data of storage \"", note.key, "\", expected it");
  }
  if (at != in.size()) bad(at, "got ", in.size() - at, " bytes behind the end, expected 0");
  Storages storages(pickle, !*little, device, [&](size_t i, void* to) {
    in.read(places[i], to, pickle.storages()[i].bytes);
  });
  return pickle.value(
      top, [&](const detail::TensorNote& note, uint64_t) { return storages.tensor(note); });
}

[[noreturn]] void not_ours(const char* op, const std::string& name, Source& in) {
  const bool tar = [&] {
    char head[5];
    if (in.size() < 262) return false;
    in.read(257, head, 5);
    return std::memcmp(head, "ustar", 5) == 0;
  }();
  fail(op, "\"", name, "\": got ",
       in.size() == 0 ? "an empty file"
       : tar          ? "a tar archive, as PyTorch before 0.1.10 wrote it"
                      : "neither a zip archive nor a pickle",
       ", expected a file that torch.save() or torch::save() wrote");
}

}  // namespace

IValue load_pt(const std::string& path, std::optional<Device> device) {
  FileSource in("load_pt", path, "a file of torch.save()");
  if (begins_with(in, kZip, 4)) {
    ZipReader zip("load_pt", path);
    return load_zip(zip, device);
  }
  if (!begins_with(in, "\x80", 1)) not_ours("load_pt", path, in);
  return load_old("load_pt", path, in, device);
}

IValue load_pt(const char* data, size_t bytes, const std::string& name,
               std::optional<Device> device) {
  MemorySource in(data, bytes);
  if (begins_with(in, kZip, 4)) {
    ZipReader zip("load_pt", name, data, bytes);
    return load_zip(zip, device);
  }
  if (!begins_with(in, "\x80", 1)) not_ours("load_pt", name, in);
  return load_old("load_pt", name, in, device);
}

// ---- as an archive ------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxName = 4096;  // as of state dicts

// A list of one kind, as archives keep them; None where it is another.
IValue typed_list(const std::vector<IValue>& items) {
  const auto all = [&](bool (IValue::*is)() const) {
    for (const IValue& item : items)
      if (!(item.*is)()) return false;
    return true;
  };
  if (items.empty()) return std::vector<int64_t>();
  if (all(&IValue::isInt)) {
    std::vector<int64_t> list;
    for (const IValue& item : items) list.push_back(item.toInt());
    return list;
  }
  if (all(&IValue::isDouble)) {
    std::vector<double> list;
    for (const IValue& item : items) list.push_back(item.toDouble());
    return list;
  }
  if (all(&IValue::isTensor)) {
    std::vector<Tensor> list;
    for (const IValue& item : items) list.push_back(item.toTensor());
    return list;
  }
  return {};
}

// `above`: bytes of the keys above it, which each value's name in the archive has.
void write_value(serialize::OutputArchive& archive, const std::string& key, const IValue& value,
                 size_t above = 0) {
  if (value.isOpaque()) return;
  above += key.size() + 1;
  RAMET_CHECK(above <= kMaxName, "torch_archive", "name of a value: got one of ", above,
              " bytes or more, expected at most ", kMaxName);
  if (value.isGenericDict()) {
    serialize::OutputArchive nested;
    for (const auto& entry : value.toGenericDict())
      write_value(nested, detail::key_text(entry.key()), entry.value(), above);
    archive.write(key, nested);
    return;
  }
  const bool typed = value.isIntList() || value.isDoubleList() || value.isTensorList();
  if (typed || (!value.isTuple() && !value.isList())) {
    archive.write(key, value);
    return;
  }
  const std::vector<IValue> items =
      value.isTuple() ? value.toTupleRef().elements() : value.toList().vec();
  const IValue list = typed_list(items);
  if (!list.isNone()) {
    archive.write(key, list);
    return;
  }
  serialize::OutputArchive nested;
  for (size_t i = 0; i < items.size(); ++i) write_value(nested, std::to_string(i), items[i], above);
  archive.write(key, nested);
}

}  // namespace

std::string detail::key_text(const IValue& key) {
  if (key.isString()) return key.toStringRef();
  auto text = ramet::detail::classic<std::ostringstream>();
  text << key;
  return text.str();
}

serialize::InputArchive torch_archive(const IValue& tree, const std::string& name) {
  RAMET_CHECK(!tree.isOpaque(), "torch_archive", "\"", name, "\": got ", tree, detail::kSaveAlone);
  serialize::OutputArchive out;
  if (detail::is_optimizer(tree)) {
    const IValue ours = detail::optimizer_archive(tree, "\"" + name + "\"");
    for (const auto& entry : ours.toGenericDict())
      write_value(out, entry.key().toStringRef(), entry.value());
  } else if (tree.isGenericDict()) {
    for (const auto& entry : tree.toGenericDict())
      write_value(out, detail::key_text(entry.key()), entry.value());
  } else if (tree.isList()) {
    const auto items = tree.toList();
    for (size_t i = 0; i < items.size(); ++i) write_value(out, std::to_string(i), items.get(i));
  } else {
    write_value(out, "0", tree);  // where a tensor alone is
  }
  serialize::InputArchive in;
  in.load_from(out.to_safetensors(), name);
  return in;
}
serialize::InputArchive torch_archive(const std::string& path, std::optional<Device> device) {
  return torch_archive(load_pt(path, device), path);
}

void load_torch(std::vector<Tensor>& tensors, const std::string& path,
                std::optional<Device> device) {
  serialize::InputArchive archive = torch_archive(path, device);
  Tensor tensor;
  for (size_t i = 0; archive.try_read(std::to_string(i), tensor); ++i) {
    tensors.push_back(std::move(tensor));
    tensor = Tensor();
  }
}

}  // namespace formats

IValue detail::pickle_load__link_Ramet_formats_too(const std::vector<char>& data) {
  return formats::load_pt(data.data(), data.size(), "memory");
}

}  // namespace ramet
