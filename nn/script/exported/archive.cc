// Opens a .pt2 archive, and makes a module of it.
#include <algorithm>

#include "nn/script/archive_sizes_internal.h"
#include "nn/script/exported/tensors_internal.h"
#include "nn/serialize/json_internal.h"

namespace ramet::script {
namespace {

using formats::detail::ZipReader;

constexpr const char* kOldGraph = "serialized_exported_program.json";
constexpr const char* kTextName = "code/__torch__/exported.py";
constexpr const char* kTorchScriptVersion = "10";  // of the operators that the text calls

bool ends(const std::string& name, const std::string& with) {
  return name.size() >= with.size() &&
         name.compare(name.size() - with.size(), with.npos, with) == 0;
}

// Where an archive of PyTorch 2.8 and later has its folders ("net/"), found by its archive_format.
std::optional<std::string> root_of(const ZipReader& zip) {
  for (const ZipReader::Entry& e : zip.entries()) {
    const std::string name = "archive_format";
    if (!ends(e.name, name)) continue;
    const std::string root = e.name.substr(0, e.name.size() - name.size());
    if (root.empty() || root.find('/') == root.size() - 1) return root;
  }
  return std::nullopt;
}

// The entry with the graph of the program that is asked for. Else it is that of "model", as
// torch.export.save() calls it, or the only one.
const ZipReader::Entry* graph_entry(const ZipReader& zip, const std::string& root,
                                    const std::string& asked, std::string& model) {
  const std::string folder = root + "models/";
  std::vector<const ZipReader::Entry*> found;
  std::string names;
  for (const ZipReader::Entry& e : zip.entries()) {
    if (e.name.compare(0, folder.size(), folder) != 0 || !ends(e.name, ".json")) continue;
    const std::string name = e.name.substr(folder.size(), e.name.size() - folder.size() - 5);
    model = name;
    if (name == (asked.empty() ? "model" : asked)) return &e;
    names += (names.empty() ? "" : ", ") + name;
    found.push_back(&e);
  }
  RAMET_CHECK(!found.empty(), zip.op(), "\"", zip.file(), "\": got no \"", folder,
              "NAME.json\", expected a program of torch.export.save(). Compiled packages "
              "(AOTInductor) are not read");
  RAMET_CHECK(found.size() == 1 && asked.empty(), zip.op(), "\"", zip.file(),
              "\": got the programs ", names, ", expected ",
              asked.empty() ? "the name of one of them in the options of load" : asked);
  return found[0];
}

std::string small_text(ZipReader& zip, const std::string& name) {
  const ZipReader::Entry* e = zip.find(name);
  if (!e) return "";
  RAMET_CHECK(e->bytes <= 64, zip.op(), place(zip, name), ": got ", e->bytes,
              " bytes, expected at most 64");
  return zip.text(*e);
}

void check_version(const Field& program) {
  const int64_t major = program["schema_version"]["major"].integer();
  if (major < 5 || major > 8)
    program.bad("got version ", major,
                " of the graph's schema, expected 5 to 8 (PyTorch 2.5 to 2.15)");
}

// The state, in the order in which the graph takes it, then what no graph uses.
std::vector<Attached> take_state(const Field& program, ExportedTensors& tensors) {
  std::vector<Attached> state;
  std::set<std::string> taken;
  const Field module = program["graph_module"];
  const Field metas = module["graph"]["tensor_values"];
  for (const Field& spec : module["signature"]["input_specs"].items()) {
    const auto [kind, value] = spec.only();
    const bool parameter = kind == "parameter";
    if (!parameter && kind != "buffer" && kind != "tensor_constant") continue;
    const std::string name = value[parameter          ? "parameter_name"
                                   : kind == "buffer" ? "buffer_name"
                                                      : "tensor_constant_name"]
                                 .text();
    if (!taken.insert(name).second) continue;
    const auto meta = metas.find(value["arg"]["name"].text());
    const auto grad = meta ? meta->find("requires_grad") : std::nullopt;
    state.push_back({name, tensors.take(value, name, parameter, parameter && grad && grad->truth()),
                     parameter});
  }
  for (const std::string& name : tensors.others()) {
    const bool parameter = tensors.is_parameter(name);
    state.push_back(
        {name, tensors.take(program, name, parameter, tensors.is_trained(name)), parameter});
  }
  for (const Attached& attached : state) {
    const std::string& name = attached.target;
    if (name.empty() || name.front() == '.' || name.back() == '.' ||
        name.find("..") != std::string::npos || std::count(name.begin(), name.end(), '.') > 100)
      program.bad("got a tensor \"", name.substr(0, 200), "\", expected names between dots");
  }
  return state;
}

constexpr const char* kGradMode =
    "class GradMode:\n"
    "  on : bool\n"
    "  before : bool\n"
    "  def __init__(self: __torch__.exported.GradMode, on: bool) -> NoneType:\n"
    "    self.on = on\n"
    "    self.before = True\n"
    "    return None\n"
    "  def __enter__(self: __torch__.exported.GradMode) -> NoneType:\n"
    "    self.before = torch.is_grad_enabled()\n"
    "    torch.set_grad_enabled(self.on)\n"
    "    return None\n"
    "  def __exit__(self: __torch__.exported.GradMode, a: Any, b: Any, c: Any) -> NoneType:\n"
    "    torch.set_grad_enabled(self.before)\n"
    "    return None\n";

// As PyTorch prints it. Both here and there the block is found by the class's name.
constexpr const char* kAutocastModule = "__torch__.torch.amp.autocast_mode";
constexpr const char* kAutocastName = "code/__torch__/torch/amp/autocast_mode.py";
constexpr const char* kAutocast =
    "class autocast:\n"
    "  fast_dtype : int\n"
    "  _enabled : bool\n"
    "  device : str\n"
    "  def __enter__(self: __torch__.torch.amp.autocast_mode.autocast) -> "
    "__torch__.torch.amp.autocast_mode.autocast:\n"
    "    return self\n"
    "  def __exit__(self: __torch__.torch.amp.autocast_mode.autocast,\n"
    "    exc_type: Any,\n"
    "    exc_val: Any,\n"
    "    exc_tb: Any) -> NoneType:\n"
    "    return None\n"
    "  def __init__(self: __torch__.torch.amp.autocast_mode.autocast,\n"
    "    device_type: str,\n"
    "    dtype: Optional[int]=None,\n"
    "    enabled: bool=True,\n"
    "    cache_enabled: Optional[bool]=None) -> NoneType:\n"
    "    if torch.__is__(dtype, None):\n"
    "      _0 = torch.get_autocast_dtype(device_type)\n"
    "    else:\n"
    "      _0 = unchecked_cast(int, dtype)\n"
    "    self.fast_dtype = _0\n"
    "    self._enabled = enabled\n"
    "    self.device = device_type\n"
    "    return None\n";

// One Error for all that the graph asks for and this library lacks: places by problem.
void report(const std::string& file, const std::vector<GraphProblem>& problems) {
  constexpr size_t kMostPlaces = 5;
  std::map<std::string, std::vector<std::string>> by_what;
  for (const GraphProblem& problem : problems)
    if (!problem.what.empty()) by_what[problem.what].push_back(problem.place);
  if (by_what.empty()) return;
  std::string text = file + ": got " + std::to_string(by_what.size()) +
                     (by_what.size() == 1 ? " problem" : " problems");
  for (const auto& [what, places] : by_what) {
    text += "\n  " + what;
    for (size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i) text += "\n    " + places[i];
    if (places.size() > kMostPlaces)
      text += "\n    and " + std::to_string(places.size() - kMostPlaces) + " more";
  }
  fail("torch::jit::load", text);
}

void read_extra(ZipReader& zip, const std::string& folder, jit::ExtraFilesMap* extra) {
  if (!extra) return;
  for (auto& [name, text] : *extra)
    if (const ZipReader::Entry* e = zip.find(folder + name)) text = zip.text(*e);
}

}  // namespace

std::string place(const ZipReader& zip, const std::string& entry) {
  return "\"" + zip.file() + "\", entry \"" + entry + "\"";
}

Json read_json(ZipReader& zip, const ZipReader::Entry& entry, int64_t depth) {
  RAMET_CHECK(entry.bytes <= most_text(zip), zip.op(), place(zip, entry.name), ": got ",
              entry.bytes, " bytes, expected at most ", most_text(zip), " in a file of ",
              zip.bytes());
  return serialize::detail::parse_json(zip.op(), place(zip, entry.name), zip.text(entry),
                                       static_cast<int>(std::clamp<int64_t>(depth, 1, 10000)));
}

bool is_exported(const ZipReader& zip) { return zip.find(kOldGraph) || root_of(zip); }

LoadedModule read_exported(ZipReader& zip, const LoadOptions& options, jit::ExtraFilesMap* extra) {
  check_sizes(zip, options.unpacked_bytes);
  std::optional<Device> device;
  if (options.device) device = resolve(*options.device);
  const ZipReader::Entry* graph = zip.find(kOldGraph);
  const bool old = graph != nullptr;
  const std::string root = old ? "" : *root_of(zip);
  std::string model;
  if (!old) graph = graph_entry(zip, root, options.model, model);
  const std::string order = small_text(zip, root + "byteorder");
  RAMET_CHECK(order.empty() || order == "little" || order == "big", zip.op(),
              place(zip, root + "byteorder"), ": got \"", order, "\", expected little or big");
  const std::string file = place(zip, graph->name);
  const Json json = read_json(zip, *graph, options.depth);
  const Field program(json, file);
  check_version(program);

  ExportedTensors tensors(zip, options, device, order == "big");
  if (old) {
    tensors.read_pickle("serialized_state_dict.pt");
    tensors.read_pickle("serialized_constants.pt");
  } else {
    tensors.read_config(root + "data/weights/" + model + "_weights_config.json",
                        root + "data/weights/");
    tensors.read_config(root + "data/constants/" + model + "_constants_config.json",
                        root + "data/constants/");
  }
  const std::vector<Attached> state = take_state(program, tensors);
  std::map<std::string, std::string> targets;
  for (const Attached& attached : state) targets.emplace(attached.target, attached.target);

  ExportedPrinter printer(options);
  PrintedLines methods, text;
  print_forward(program, printer, options.depth, targets, methods);
  methods.add(printer.methods);
  report(file, printer.problems());
  const ExportedModules modules(state);
  modules.print(text, methods);
  if (printer.uses_grad_mode) text.text += kGradMode;

  LoadedModule loaded;
  loaded.texts = std::make_shared<ArchiveTexts>();
  loaded.texts->file = zip.file();
  loaded.texts->version = kTorchScriptVersion;
  loaded.texts->code.emplace_back(kTextName, text.text);
  loaded.texts->by_name[kTextName] = 0;
  SourcePtr autocast;
  if (printer.uses_autocast) {
    loaded.texts->code.emplace_back(kAutocastName, kAutocast);
    loaded.texts->by_name[kAutocastName] = 1;
    const auto made = std::make_shared<Source>();
    made->name = kAutocastName;
    made->text = kAutocast;
    autocast = made;
  }
  const auto source = std::make_shared<Source>();
  source->name = kTextName;
  source->text = std::move(text.text);
  source->origins = std::move(text.origins);
  const auto lookup = [source, autocast](const std::string& name) -> SourcePtr {
    return name == "__torch__.exported" ? source : name == kAutocastModule ? autocast : nullptr;
  };
  Limits limits;
  limits.depth = options.depth;
  limits.recursion = options.recursion;
  limits.steps = options.steps;
  limits.expressions = options.expressions;
  const auto unit = std::make_shared<CompilationUnit>(lookup, std::vector<IValue>(),
                                                      std::stoll(kTorchScriptVersion), limits);
  unit->device = device;
  loaded.object = modules.make(unit);
  read_extra(zip, old ? "extra_files/" : root + "extra/", extra);
  return loaded;
}

}  // namespace ramet::script
