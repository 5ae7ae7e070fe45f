// The regions that ramet_autocast_enter has opened on this thread.
#pragma once
#include <cstddef>

namespace ramet::c {

/// During its lifetime a function of the caller's runs. It cannot leave regions that were open
/// before.
class AutocastFloor {
 public:
  AutocastFloor();
  /// Leaves the regions that the function has left open.
  ~AutocastFloor();
  AutocastFloor(const AutocastFloor&) = delete;
  AutocastFloor& operator=(const AutocastFloor&) = delete;
  /// How many regions the function has left open.
  size_t left_open() const;

 private:
  const size_t before_;
};

}  // namespace ramet::c
