#include "tools/ledger/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

// v3 and v4 have the same bits, and so have the only kernels of other processor families.
std::string kernels_of_cpu() {
#if defined(__x86_64__)
  if (config().find("cpu kernels: base") != std::string::npos) return "base";
#endif
  return "with fused multiply-add";
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

void check_ledger_path(const std::string& path) {
  struct stat status {};
  RAMET_CHECK(::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode), "ledger", "\"", path,
              "\": got something that is no file, expected a file or a new name");
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  RAMET_CHECK(::access(folder.c_str(), W_OK | X_OK) == 0, "ledger", "cannot write into \"", folder,
              "\" (", std::strerror(errno), ")");
}

void remove_ledger(const std::string& path) {
  remove_checkpoints(path);
  if (ReadLedger::is_ledger(path)) ::unlink(path.c_str());
}

void remove_checkpoints(const std::string& ledger) {
  if (!ReadLedger::is_ledger(ledger)) return;
  try {
    for (const int64_t at : ReadLedger(ledger).checkpoints())
      ::unlink(checkpoint_path(ledger, at).c_str());
    ::rmdir((ledger + ".checkpoints").c_str());  // where nothing else is in it
  } catch (const Error&) {}                      // damaged: which files are its own is not known
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
  // A run that went on without a ledger for a while leaves a gap.
  const std::vector<int64_t> steps = ledger.steps();
  auto last = std::find(steps.begin(), steps.end(), step);
  while (last != steps.begin() && *(last - 1) == *last - 1) --last;
  const int64_t first = *last;
  int64_t found = -1;
  std::string missing;
  for (const int64_t at : ledger.checkpoints()) {
    if (at >= step || at + 1 < first) continue;
    if (exists(checkpoint_path(ledger.path(), at))) found = std::max(found, at);
    else missing = checkpoint_path(ledger.path(), at);
  }
  RAMET_CHECK(found >= 0, "ledger", "no checkpoint before step ", step, ": ",
              missing.empty() ? "\"" + ledger.path() + "\" names none with all steps after it"
                              : "\"" + missing + "\" is missing");
  return found;
}

}  // namespace ledger
}  // namespace ramet
