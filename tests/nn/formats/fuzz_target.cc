// What libFuzzer calls, compiled by libfuzzer_test.sh: one reader, which RAMET_FUZZ_READER names,
// gets bytes that were made to reach code that others did not. It may throw an Error; anything else
// is found.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "nn/c/layers_internal.h"
#include "nn/data/idx.h"
#include "nn/formats/numpy/npy.h"
#include "nn/formats/numpy/npz.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "nn/script/unit_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "runtime/memory/allocator.h"

namespace {

using namespace ramet;

// For readers that take a path: in the folder of "one.safetensors", which an index may name.
const std::string& file_of(const char* data, size_t size) {
  static const std::string path = std::string(std::getenv("RAMET_FUZZ_FOLDER")) + "/file";
  std::ofstream(path, std::ios::binary).write(data, static_cast<std::streamsize>(size));
  return path;
}

// A text of TorchScript: all that it defines is declared and compiled.
void compile(const std::string& text) {
  auto source = std::make_shared<script::Source>();
  source->name = "fuzz", source->text = text;
  const auto unit = std::make_shared<script::CompilationUnit>(
      [source](const std::string& module) { return module == "__torch__" ? source : nullptr; },
      std::vector<IValue>(), 10, script::Limits());
  const script::FileSyntax file = script::parse(source);
  for (const auto& c : file.classes) {
    const script::TypePtr type = unit->type_named("__torch__." + c->name);
    if (type->info())
      for (const auto& method : type->info()->methods) unit->compile(*method);
  }
  for (const auto& f : file.functions) unit->compile(*unit->function_named("__torch__." + f->name));
  unit->report_problems();
}

void read(const std::string& reader, const char* data, size_t size) {
  if (reader == "npy") {
    formats::load_npy(data, size);
  } else if (reader == "npz") {
    formats::load_npz(data, size);
  } else if (reader == "safetensors") {
    serialize::load_safetensors(data, size);
  } else if (reader == "index") {
    serialize::load_safetensors_index(file_of(data, size));
  } else if (reader == "idx") {
    data::read_idx(file_of(data, size));
  } else if (reader == "archive") {
    std::vector<Tensor> tensors;
    ramet::load(tensors, data, size);
  } else if (reader == "module") {  // which may be a large one
    try {
      c::module_of_json("fuzz", std::string(data, size));
    } catch (const OutOfMemoryError&) {}
  } else if (reader == "script") {
    compile(std::string(data, size));
  } else if (reader == "debug_pkl") {
    script::read_origins("fuzz", std::string(data, size));
  } else if (reader == "torchscript") {
    std::istringstream in(std::string(data, size));
    jit::load(in);
  } else if (reader == "pt") {
    formats::tensors_of(formats::load_pt(data, size));
  } else {  // a pickle alone, in an archive that is right otherwise
    static const char storage[64] = {};
    const std::vector<char> zip = formats::detail::zip_bytes(
        "fuzz",
        {{"a/data.pkl", {{data, size}}}, {"a/data/0", {{storage, 64}}}, {"a/constants.pkl", {}}},
        /*deflate=*/false);
    formats::tensors_of(formats::load_pt(zip.data(), zip.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string reader = [] {
    const char* name = std::getenv("RAMET_FUZZ_READER");
    return std::string(name ? name : "pickle");
  }();
  set_memory_limit(Device(kCPU, 0), int64_t{1} << 28);
  try {
    read(reader, reinterpret_cast<const char*>(data), size);
  } catch (const OutOfMemoryError&) {
    std::abort();  // a file of these sizes costs less
  } catch (const Error&) {}
  return 0;
}
