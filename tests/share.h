// Which share of its repetitions a test runs where every step costs many times as much.
#pragma once
#include <algorithm>
#include <cstdlib>

namespace ramet {
namespace testing {

/// RAMET_TEST_SHARE, 1 where it is not set (.bazelrc sets it for sanitizers and --config=check). Of
/// repetitions that search for other schedules or other failures, one in that many is done. Where
/// it is more than 1, cases go that make the same accesses to memory as others, with other values.
inline int one_repeat_in() {
  const char* text = std::getenv("RAMET_TEST_SHARE");
  return text ? std::max(1, std::atoi(text)) : 1;
}

}  // namespace testing
}  // namespace ramet
