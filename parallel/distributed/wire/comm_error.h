// The error of a collective that fails.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// Why a group stopped working. After the first failure every later call of the group throws at
/// once. ProcessGroup::regroup makes a new group of the ranks that are left. The message names the
/// operation, its number and name, and the ranks.
class RAMET_API CommError : public Error {
 public:
  /// What happened.
  enum class Kind : unsigned char {
    mismatch,  // The ranks were not running the same operation: CommMismatch.
    timeout,   // Ranks did not come, or stopped in the middle, until the deadline.
    lost,      // The connection to a rank broke, its process ended: CommLost.
    aborted,   // A rank called abort(), or failed outside the group: CommAborted.
  };
  CommError(Kind kind, int origin, std::vector<int> ranks, const std::string& message)
      : Error(message), kind_(kind), origin_(origin), ranks_(std::move(ranks)) {}
  ~CommError() override;
  /// What happened.
  Kind kind() const { return kind_; }
  /// The rank that detected it, or that called abort().
  int origin() const { return origin_; }
  /// The ranks that were missing, lost or different; empty if that is not known.
  const std::vector<int>& ranks() const { return ranks_; }

 private:
  Kind kind_;
  int origin_;
  std::vector<int> ranks_;
};

/// The ranks were not running the same operation.
class RAMET_API CommMismatch final : public CommError {
 public:
  using CommError::CommError;
  ~CommMismatch() override;
};
/// Ranks did not come, or stopped in the middle, until the deadline.
class RAMET_API CommTimeout final : public CommError {
 public:
  using CommError::CommError;
  ~CommTimeout() override;
};
/// The connection to a rank broke, its process ended.
class RAMET_API CommLost final : public CommError {
 public:
  using CommError::CommError;
  ~CommLost() override;
};
/// A rank called abort(), or failed outside the group.
class RAMET_API CommAborted final : public CommError {
 public:
  using CommError::CommError;
  ~CommAborted() override;
};

}  // namespace distributed
}  // namespace ramet
