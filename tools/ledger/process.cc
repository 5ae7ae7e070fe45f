#include "tools/ledger/process.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "kernels/config.h"
#include "tools/ledger/ledger.h"

namespace ramet {
namespace ledger {

bool exists(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

int64_t number_from(const char* variable, const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 18 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  RAMET_CHECK(digits && std::stoll(text) > 0, variable, "got \"", text,
              "\", expected the number of a step, from 1");
  return std::stoll(text);
}

// v3 and v4 have the same bits.
std::string kernels_of_cpu() {
  return config().find("cpu kernels: base") == std::string::npos ? "with fused multiply-add"
                                                                 : "base";
}

std::string current_folder() {
  std::unique_ptr<char, void (*)(void*)> path(::getcwd(nullptr, 0), std::free);
  return path ? path.get() : "";
}

static std::string program_path() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  if (!words.empty()) words[0] = program_path();
  return words;
}

void remove_ledger(const std::string& path) {
  ::unlink(path.c_str());
  const std::string folder = path + ".checkpoints";
  std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") == std::string::npos)
      ::unlink((folder + "/" + name).c_str());
  }
  ::rmdir(folder.c_str());  // where nothing else is in it
}

std::optional<ToVerify> to_verify() {
  const char* const text = std::getenv("RAMET_LEDGER_VERIFY");
  if (!text || !*text) return std::nullopt;
  const std::string all = text;
  const size_t colon = all.find(':');
  RAMET_CHECK(colon != std::string::npos, "RAMET_LEDGER_VERIFY", "got \"", all,
              "\", expected STEP:PATH");
  return ToVerify{all.substr(colon + 1), number_from("RAMET_LEDGER_VERIFY", all.substr(0, colon))};
}

std::string recorded_settings(const std::string& path) {
  return ReadLedger(path).header().settings;
}

int64_t nearest(const ReadLedger& ledger, int64_t step) {
  ledger.step(step);  // is there
  int64_t found = -1;
  std::string missing;
  for (const int64_t at : ledger.checkpoints()) {
    if (at >= step) continue;
    if (exists(checkpoint_path(ledger.path(), at))) found = std::max(found, at);
    else missing = checkpoint_path(ledger.path(), at);
  }
  RAMET_CHECK(
      found >= 0, "ledger", "no checkpoint before step ", step, ": ",
      missing.empty() ? "\"" + ledger.path() + "\" names none" : "\"" + missing + "\" is missing");
  return found;
}

std::string nearest_checkpoint(const std::string& path, int64_t step) {
  const ReadLedger ledger(path);
  return checkpoint_path(path, nearest(ledger, step));
}

}  // namespace ledger
}  // namespace ramet
