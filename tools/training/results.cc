#include "tools/training/results.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tools/ledger/ledger.h"
#include "tools/training/explore.h"

namespace ramet::training {

namespace {

constexpr const char *kConfig = "config.json",
                     *kResults[] = {
                         kConfig,     "model.safetensors", "metrics.jsonl", "summary.json",
                         "curve.png", "graph.svg",         "trace.json",    "pictures.png",
                         kPage,       "step.ramet.gz",     kLedger};

// Of the models only GPT-2 writes config.json, and its run writes summary.json after that.
bool wrote_config(const std::string& folder) {
  std::ifstream in(folder + "/summary.json");
  const auto summary = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  return summary.contains("model") && summary.at("model") == "gpt2";
}

// The id of the process that wrote the temporary file of a result (AtomicFile); otherwise 0.
pid_t writer_of(const std::string& temporary) {
  const auto writer = [&](const std::string& name) -> pid_t {
    const std::string start = name + ".tmp.";
    if (temporary.compare(0, start.size(), start) != 0) return 0;
    const char* digits = "0123456789";
    const size_t dot = temporary.find_first_not_of(digits, start.size());
    if (dot == start.size() || dot == std::string::npos || dot - start.size() > 9 ||
        temporary[dot] != '.' || dot + 1 == temporary.size() ||
        temporary.find_first_not_of(digits, dot + 1) != std::string::npos)
      return 0;
    return static_cast<pid_t>(std::atoi(temporary.c_str() + start.size()));
  };
  for (const char* name : kResults)
    if (const pid_t pid = writer(name)) return pid;
  return writer("checkpoint");
}

}  // namespace

void make_folders(const std::string& path, const char* option) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    RAMET_CHECK(::mkdir(part.c_str(), 0777) == 0 || errno == EEXIST, "train", "--", option,
                ": cannot make the folder \"", part, "\" (", std::strerror(errno), ")");
  }
  RAMET_CHECK(::access(path.c_str(), W_OK | X_OK) == 0, "train", "--", option,
              ": cannot write into \"", path, "\" (", std::strerror(errno), ")");
}

void remove_leftovers(const std::string& folder) {
  DIR* entries = ::opendir(folder.c_str());
  if (!entries) return;  // a folder one may write but not read
  while (const dirent* entry = ::readdir(entries)) {
    const pid_t pid = writer_of(entry->d_name);
    // This process has written nothing yet: a file with its id comes from a dead process.
    const bool dead = pid == ::getpid() || (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH);
    if (dead) ::unlink((folder + "/" + entry->d_name).c_str());
  }
  ::closedir(entries);
}

bool is_result(const std::string& path, const std::string& folder) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return false;
  const auto same = [&](const char* name) {
    struct stat result {};
    return ::stat((folder + "/" + name).c_str(), &result) == 0 && result.st_dev == file.st_dev &&
           result.st_ino == file.st_ino;
  };
  return same("checkpoint") || std::any_of(std::begin(kResults), std::end(kResults), same);
}

void remove_stale_results(const std::string& folder) {
  // config.json is the first one: summary.json says which model wrote it.
  const bool own_config = wrote_config(folder);
  for (const char* name : kResults)
    if (name != kConfig || own_config) ::unlink((folder + "/" + name).c_str());
  ledger::remove_ledger(folder + "/" + kLedger);
}

}  // namespace ramet::training
