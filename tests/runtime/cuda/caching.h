// Whether memory of GPUs is kept when it is freed, for one test.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace ramet::testing {

/// Sets RAMET_CUDA_CACHING for the Gpus that are made and destroyed while it lives. The checker's
/// tests run without a cache (.bazelrc); tests of the cache turn it on with this.
class Caching {
 public:
  explicit Caching(const char* value) {
    if (const char* now = std::getenv(kName)) before_ = now;
    setenv(kName, value, 1);
  }
  ~Caching() {
    if (before_) setenv(kName, before_->c_str(), 1);
    else unsetenv(kName);
  }
  Caching(const Caching&) = delete;

 private:
  static constexpr const char* kName = "RAMET_CUDA_CACHING";
  std::optional<std::string> before_;
};

}  // namespace ramet::testing
