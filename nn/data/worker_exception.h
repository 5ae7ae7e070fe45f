// What a DataLoader throws when a worker's get_batch threw.
#pragma once
#include <exception>
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace data {

/// Carries the original exception: std::rethrow_exception(e.original_exception).
struct RAMET_API WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original);
  ~WorkerException() override;
  /// "message", with the original's.
  const char* what() const noexcept override { return message.c_str(); }

  std::exception_ptr original_exception;
  std::string message;  // with the original's
};

}  // namespace data
}  // namespace ramet
