// RECORD_FUNCTION and torch::autograd::profiler::RecordProfile, over Ramet's scopes and traces.
#pragma once
#include <fstream>
#include <memory>
#include <ostream>
#include <string>

#include "ramet/compat/macros.h"

// A scope to the end of the block, which traces and anomaly mode name. The inputs are not kept, nor
// even evaluated.
#define RECORD_FUNCTION(name, ...) \
  const ::ramet::RecordScope C10_ANONYMOUS_VARIABLE(ramet_scope_)(name)
#define RECORD_USER_SCOPE(name) RECORD_FUNCTION(name, )
#define RECORD_USER_SCOPE_WITH_INPUTS(name, ...) RECORD_FUNCTION(name, )

namespace torch {
namespace autograd {
namespace profiler {

/// What all threads do while it lives, as a file or a stream in Chrome's trace format
/// (chrome://tracing, Perfetto).
class RecordProfile {
 public:
  explicit RecordProfile(std::ostream& out) : out_(&out) { trace_.start(); }
  explicit RecordProfile(const std::string& path)
      : file_(std::make_unique<std::ofstream>(path)), out_(file_.get()) {
    RAMET_CHECK(file_->good(), "RecordProfile", "cannot write ", path);
    trace_.start();
  }
  RecordProfile(const RecordProfile&) = delete;
  RecordProfile& operator=(const RecordProfile&) = delete;
  ~RecordProfile() {
    trace_.stop();
    *out_ << trace_.json();
    out_->flush();
  }

 private:
  std::unique_ptr<std::ofstream> file_;
  std::ostream* out_;
  ::ramet::ChromeTrace trace_;
};

}  // namespace profiler
}  // namespace autograd
}  // namespace torch
