#include "runtime/cuda/libraries.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>

namespace ramet {
namespace cuda {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

void add_matches(std::vector<std::string>& out, const std::string& pattern) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
  globfree(&found);
}

}  // namespace

std::vector<std::string> places_of(const std::string& file, const std::string& wheel) {
  std::vector<std::string> out;
  const std::string named = variable("RAMET_CUDA_LIBS");
  for (size_t at = 0; at < named.size();) {
    const size_t end = std::min(named.find(':', at), named.size());
    if (end > at) out.push_back(named.substr(at, end - at) + "/" + file);
    at = end + 1;
  }
  out.push_back(file);
  const std::string toolkit = variable("CUDA_PATH");
  for (const char* folder : {"/lib64/", "/lib/"})
    out.push_back((toolkit.empty() ? "/usr/local/cuda" : toolkit) + folder + file);
  for (const std::string& root :
       {variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), variable("HOME") + "/.local",
        std::string("/usr/local"), std::string("/usr")}) {
    if (root.empty()) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      add_matches(out, root + "/lib/python3*/" + packages + "/nvidia/" + wheel + "/lib/" + file);
  }
  return out;
}

void* open_library(const std::string& file, const std::string& wheel, std::string* why) {
  for (const std::string& place : places_of(file, wheel)) {
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* said = dlerror();
    *why += (why->empty() ? "" : "; ") + std::string(said ? said : place.c_str());
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace ramet
