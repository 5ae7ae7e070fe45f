#include "runtime/cuda/shared_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace ramet {
namespace cuda {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The folders lib*/python*/site-packages/nvidia/*/lib of an environment, in the order of their
// names.
void add_wheels(const std::string& environment, std::vector<std::string>& folders) {
  if (environment.empty()) return;
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& python : fs::directory_iterator(fs::path(environment) / "lib", ignored)) {
    const fs::path nvidia = python.path() / "site-packages" / "nvidia";
    for (const auto& wheel : fs::directory_iterator(nvidia, ignored))
      if (fs::is_directory(wheel.path() / "lib", ignored))
        found.push_back((wheel.path() / "lib").string());
  }
  std::sort(found.begin(), found.end());
  folders.insert(folders.end(), found.begin(), found.end());
}

// "" stands for where the loader looks.
std::vector<std::string> places() {
  std::vector<std::string> folders;
  std::istringstream list(variable("RAMET_CUDA_LIBS"));
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  folders.emplace_back();
  for (const std::string& home :
       {variable("CUDA_PATH"), variable("CUDA_HOME"), std::string("/usr/local/cuda")})
    if (!home.empty()) folders.push_back(home + "/lib64");
  add_wheels(variable("VIRTUAL_ENV"), folders);
  add_wheels(variable("CONDA_PREFIX"), folders);
  return folders;
}

}  // namespace

void* open_library(const std::vector<std::string>& names, std::string& why) {
  std::string looked, said;
  for (const std::string& folder : places()) {
    looked += (looked.empty() ? "" : ", ") + (folder.empty() ? "where the loader looks" : folder);
    for (const std::string& name : names) {
      const std::string path = folder.empty() ? name : folder + "/" + name;
      std::error_code ignored;
      if (!folder.empty() && !fs::exists(path, ignored)) continue;
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      if (const char* text = dlerror(); text && !folder.empty()) said += std::string("; ") + text;
    }
  }
  why = names.front() +
        " was not found in RAMET_CUDA_LIBS, the loader's folders, the toolkit or "
        "Python's wheels (" +
        looked + ")" + said;
  return nullptr;
}

void* library_function(void* library, const char* name) { return dlsym(library, name); }

}  // namespace cuda
}  // namespace ramet
