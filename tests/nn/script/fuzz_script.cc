#include "tests/nn/script/fuzz_script.h"

#include <fstream>
#include <map>
#include <sstream>

#include "autograd/ops.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "tests/nn/fuzz/fuzz_files.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace fuzz {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

const Entries& golden(const std::string& name) {
  static std::map<std::string, Entries> read;
  Entries& entries = read[name];
  if (entries.empty()) {
    formats::detail::ZipReader zip("test", script_files::file(name));
    for (const auto& e : zip.entries()) entries.emplace_back(e.name, zip.text(e));
  }
  return entries;
}

std::string packed(const Entries& entries) {
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& [name, text] : entries) parts.push_back({name, {{text.data(), text.size()}}});
  const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  return {bytes.begin(), bytes.end()};
}

bool ends(const std::string& name, const std::string& with) {
  return name.size() >= with.size() &&
         name.compare(name.size() - with.size(), with.npos, with) == 0;
}

}  // namespace

void check_script(Tape& tape) {
  static const std::vector<std::string> names = {"mlp_traced", "types",  "hooked",
                                                 "forked",     "shared", "beam"};
  const std::string& name = tape.one_of(names);
  Entries entries = golden(name);
  std::string file;
  if (tape.one_in(4)) {
    file = packed(entries);
    damage(tape, file, false);
  } else {
    static const std::vector<std::string> kinds = {
        "data.pkl", ".py", ".debug_pkl", "version", "byteorder", "constants.pkl", "data/0"};
    const std::string& kind = tape.one_of(kinds);
    for (auto& [entry, text] : entries)
      if (ends(entry, kind) && !tape.one_in(3)) damage(tape, text, false);
    file = packed(entries);
  }
  script::LoadOptions options;
  options.steps = 10000;
  options.recursion = 50;
  jit::Module net;
  const bool loaded = loads_or_refuses(4 * file.size(), [&] {
    std::istringstream in(file);
    net = jit::load(in, options);
  });
  if (!loaded) return;
  try {
    net({randn({2, name == "mlp_traced" ? 5 : 3})});
  } catch (const Error& error) { RC_ASSERT(std::string(error.what()) != ""); }
  std::ostringstream out;
  net.save(out);
  RC_ASSERT(!out.str().empty());
}

}  // namespace fuzz
}  // namespace ramet
