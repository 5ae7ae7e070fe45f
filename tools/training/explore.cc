#include "tools/training/explore.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "runtime/base/error.h"

namespace ramet::training {

std::string recording_beside(const std::string& page) {
  constexpr std::string_view kEnding = ".html";
  const bool has = page.size() > kEnding.size() && page.ends_with(kEnding);
  return (has ? page.substr(0, page.size() - kEnding.size()) : page) + ".ramet.gz";
}

void check_page(const std::string& page, const std::string& made) {
  const size_t slash = page.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : page.substr(0, slash + 1);
  if (folder == made + "/") return;
  struct stat there {};
  RAMET_CHECK(slash == std::string::npos || slash + 1 < page.size(), "train", "--explore: got \"",
              page, "\", expected the name of a file");
  RAMET_CHECK(::stat(page.c_str(), &there) != 0 || S_ISREG(there.st_mode), "train",
              "--explore: got \"", page, "\", expected the name of a file");
  RAMET_CHECK(::access(folder.c_str(), W_OK | X_OK) == 0, "train",
              "--explore: cannot write into \"", folder, "\" (", std::strerror(errno), ")");
}

}  // namespace ramet::training
