#include "tests/nn/script/fuzz_exported.h"

#include <map>
#include <sstream>

#include "autograd/ops.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "tests/nn/fuzz/fuzz_files.h"

namespace ramet {
namespace fuzz {
namespace {

using ExportedEntries = std::vector<std::pair<std::string, std::string>>;

const ExportedEntries& exported_golden(const std::string& name) {
  static std::map<std::string, ExportedEntries> read;
  ExportedEntries& entries = read[name];
  if (entries.empty()) {
    formats::detail::ZipReader zip("test", "tests/nn/script/goldens/exported/" + name + ".pt2");
    for (const auto& e : zip.entries()) entries.emplace_back(e.name, zip.text(e));
  }
  return entries;
}

// Puts a quoted word of the text in another word's place.
void swap_words(Tape& tape, std::string& text) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    const size_t end = text.find('"', at + 1);
    if (end == std::string::npos) break;
    words.emplace_back(at, end + 1 - at);
    at = end;
  }
  if (words.empty()) return;
  const auto from = tape.one_of(words), to = tape.one_of(words);
  text.replace(to.first, to.second, text.substr(from.first, from.second));
}

}  // namespace

void check_exported(Tape& tape) {
  static const std::vector<std::string> names = {"control_2.15", "nested_2.15", "sizes_2.15",
                                                 "cnn_2.15", "cnn_2.5"};
  const std::string& name = tape.one_of(names);
  ExportedEntries entries = exported_golden(name);
  static const std::vector<std::string> kinds = {".json",    ".json", "config.json",
                                                 "weight_0", ".pt",   "byteorder"};
  const std::string& kind = tape.one_of(kinds);
  for (auto& [entry, text] : entries) {
    if (entry.find(kind) == std::string::npos || tape.one_in(3)) continue;
    if (kind == ".json" && !tape.one_in(3)) swap_words(tape, text);
    else damage(tape, text, false);
  }
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& [entry, text] : entries) parts.push_back({entry, {{text.data(), text.size()}}});
  const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  std::string file(bytes.begin(), bytes.end());
  if (tape.one_in(6)) damage(tape, file, false);
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
    net({randn({3, 2, 6, 6}, kDouble)});
  } catch (const Error& error) { RC_ASSERT(std::string(error.what()) != ""); }
  std::ostringstream out;
  net.save(out);
  RC_ASSERT(!out.str().empty());
}

}  // namespace fuzz
}  // namespace ramet
