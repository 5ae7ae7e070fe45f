// Opens a TorchScript archive: its folder, version, code, constants and extra files.
#include <algorithm>

#include "nn/script/archive_internal.h"
#include "nn/script/archive_sizes_internal.h"

namespace ramet::script {
namespace {

using formats::detail::ZipReader;

// Of an entry of code, below the folder: save() writes it into another folder.
constexpr size_t kMostOfName = 4096;

constexpr int64_t kLeastVersion = 3, kMostVersion = 10;
constexpr const char* kNewer = "1.6 or later";  // 1.4 and 1.5 write format 2

// The folder in which everything lies, found by its data.pkl.
std::string root_of(const ZipReader& zip) {
  std::string found;
  const auto bad = [&](const auto&... parts) {
    fail(zip.op(), "\"", zip.file(), "\": ", parts...);
  };
  for (const ZipReader::Entry& e : zip.entries()) {
    const size_t slash = e.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string name = e.name.substr(slash + 1);
    if (name == "model.json")
      bad("got a TorchScript file of format 1 or 2 (\"", e.name, "\"), expected format ",
          kLeastVersion, " to ", kMostVersion, ": load and save it with PyTorch ", kNewer);
    if (name == "bytecode.pkl")
      bad("got a file for mobile devices (.ptl, \"", e.name,
          "\"), expected one of torch.jit.save()");
    if (name != "data.pkl") continue;
    if (!found.empty()) bad("got \"", e.name, "\" besides \"", found, name, "\", expected one");
    found = e.name.substr(0, slash + 1);
  }
  if (found.empty())
    bad("got a zip archive without data.pkl, expected one that torch.jit.save() wrote");
  if (!zip.find(found + "constants.pkl"))
    bad("got an archive without constants.pkl, as torch.save() writes: expected one of "
        "torch.jit.save(). Read tensors alone with formats::load_pt()");
  return found;
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

int64_t version_of(ZipReader& zip, const std::string& root, std::string& text) {
  std::string name = root + ".data/version";
  if (!zip.find(name)) name = root + "version";
  text = short_text(zip, name);
  int64_t version = -1;
  if (!text.empty() && text.size() <= 2 && text.find_first_not_of("0123456789") == text.npos)
    version = std::stoll(text);
  RAMET_CHECK(version >= kLeastVersion && version <= kMostVersion, zip.op(), "\"", zip.file(),
              "\", entry \"", name, "\": got format ",
              text.empty() ? "nothing" : "\"" + text + "\"", ", expected ", kLeastVersion, " to ",
              kMostVersion, version == 2 ? ": load and save it with PyTorch " : "",
              version == 2 ? kNewer : "");
  return version;
}

std::shared_ptr<ArchiveTexts> read_code(ZipReader& zip, const std::string& root) {
  auto texts = std::make_shared<ArchiveTexts>();
  texts->file = zip.file();
  const std::string folder = root + "code/";
  const uint64_t most = most_text(zip);
  uint64_t all = 0;
  for (const ZipReader::Entry& e : zip.entries()) {
    if (e.name.compare(0, folder.size(), folder) != 0) continue;
    all += std::min(e.bytes, most);
    RAMET_CHECK(e.bytes <= most && all <= most, zip.op(), "\"", zip.file(), "\", entry \"", e.name,
                "\": got ", e.bytes, " bytes of code, expected at most ", most,
                " of all code in a file of ", zip.bytes());
    const std::string name = e.name.substr(root.size());
    RAMET_CHECK(name.size() <= kMostOfName && formats::detail::is_entry_name(name), zip.op(), "\"",
                zip.file(), "\", an entry of code: got a name of ", name.size(),
                " bytes, expected UTF-8 without control characters, of at most ", kMostOfName);
    texts->by_name[name] = texts->code.size();
    texts->code.emplace_back(name, zip.text(e));
  }
  return texts;
}

}  // namespace

const std::string* ArchiveTexts::find(const std::string& name) const {
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : &code[at->second].second;
}

LoadedModule read_archive(ZipReader& zip, const LoadOptions& options, jit::ExtraFilesMap* extra) {
  check_sizes(zip, options.unpacked_bytes);
  const std::string root = root_of(zip);
  std::string version_text;
  const int64_t version = version_of(zip, root, version_text);
  const std::string order = short_text(zip, root + "byteorder");
  RAMET_CHECK(order.empty() || order == "little" || order == "big", zip.op(), "\"", zip.file(),
              "\", entry \"", root, "byteorder\": got \"", order, "\", expected little or big");
  ObjectOptions reading;
  reading.big = order == "big";
  if (options.device) reading.device = resolve(*options.device);
  Limits& limits = reading.limits;
  limits.depth = options.depth;
  limits.recursion = options.recursion;
  limits.steps = options.steps;
  limits.expressions = options.expressions;

  LoadedModule loaded;
  loaded.texts = read_code(zip, root);
  loaded.texts->version = version_text;
  const IValue constants = read_objects(zip, root + "constants", reading, nullptr);
  RAMET_CHECK(constants.isTuple(), zip.op(), "\"", zip.file(), "\", entry \"", root,
              "constants.pkl\": got ", constants.tagKind(), ", expected a tuple");
  const auto lookup = [texts = loaded.texts](const std::string& module) -> SourcePtr {
    std::string name = "code/" + module;
    std::replace(name.begin(), name.end(), '.', '/');
    name += ".py";
    const std::string* text = texts->find(name);
    if (!text) return nullptr;
    auto source = std::make_shared<Source>();
    source->name = name;
    source->text = *text;
    if (const std::string* debug = texts->find(name + ".debug_pkl"))
      source->origins = read_origins(name + ".debug_pkl", *debug);
    return source;
  };
  const auto unit =
      std::make_shared<CompilationUnit>(lookup, constants.toTupleRef().elements(), version, limits);
  unit->device = reading.device;
  const IValue module = read_objects(zip, root + "data", reading, unit);
  loaded.object = module_in(module);
  RAMET_CHECK(loaded.object, zip.op(), "\"", zip.file(), "\", entry \"", root, "data.pkl\": got ",
              module.isObject() ? module.toObject()->class_name() : module.tagKind(),
              ", expected a module");
  if (extra) {
    for (auto& [name, text] : *extra)
      if (const ZipReader::Entry* e = zip.find(root + "extra/" + name)) text = zip.text(*e);
  }
  return loaded;
}

void compile(const LoadedModule& module, ScriptFunction& function) {
  const std::lock_guard<std::mutex> lock(module.texts->compiling);
  if (function.program) return;
  CompilationUnit& unit = *module.object->unit();
  unit.compile(function);
  unit.report_problems();
}

void compile_all(const LoadedModule& module) {
  const std::lock_guard<std::mutex> lock(module.texts->compiling);
  CompilationUnit& unit = *module.object->unit();
  for (const auto& method : module.object->info()->methods) unit.compile(*method);
  unit.report_problems();
}

}  // namespace ramet::script
