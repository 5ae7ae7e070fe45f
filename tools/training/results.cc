#include "tools/training/results.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace ramet::training {

void make_folders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    RAMET_CHECK(::mkdir(part.c_str(), 0777) == 0 || errno == EEXIST, "train",
                "--out: cannot make the folder \"", part, "\" (", std::strerror(errno), ")");
  }
  RAMET_CHECK(::access(path.c_str(), W_OK | X_OK) == 0, "train", "--out: cannot write into \"",
              path, "\" (", std::strerror(errno), ")");
}

void remove_stale_results(const std::string& folder) {
  for (const char* name : {"model.safetensors", "metrics.jsonl", "summary.json", "curve.png",
                           "graph.svg", "trace.json"})
    ::unlink((folder + "/" + name).c_str());
}

}  // namespace ramet::training
