// Random tests that can be run again.
//
// A random test draws all its decisions from a Tape, a list of small numbers that rapidcheck makes.
// Where a test fails, rapidcheck searches for a shorter tape of smaller numbers that fails too, and
// prints what that one did. RAMET_SEED and RAMET_ROUNDS replace the seed and the number of rounds.
// Both are printed, and the same two give the same tapes.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace ramet {
namespace fuzz {

class Tape {
 public:
  explicit Tape(std::vector<uint16_t> cells) : cells_(std::move(cells)) {}
  bool left() const { return at_ < cells_.size(); }
  /// 0 .. n - 1; after the end of the tape 0. Smaller is meant to be simpler.
  int64_t below(int64_t n) { return n > 1 && left() ? cells_[at_++] % n : 0; }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == n - 1; }
  template <class T> const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::vector<uint16_t> cells_;
  size_t at_ = 0;
};

inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}
inline uint64_t seed() { return setting("RAMET_SEED", 1); }
inline int rounds(int otherwise) {
  return static_cast<int>(setting("RAMET_ROUNDS", static_cast<uint64_t>(otherwise)));
}
inline void announce(int rounds) {
  std::printf("RAMET_SEED=%llu RAMET_ROUNDS=%d\n", static_cast<unsigned long long>(seed()), rounds);
  std::fflush(stdout);
}

/// property(Tape&) on `default_rounds` tapes of up to `cells` numbers. It fails by throwing:
/// RC_ASSERT and RC_FAIL do.
template <class F> void check_tapes(int default_rounds, int cells, F property) {
  rc::detail::TestParams params;
  params.seed = seed();
  params.maxSuccess = rounds(default_rounds);
  announce(params.maxSuccess);
  setenv("RC_PARAMS", ("seed=" + std::to_string(params.seed)).c_str(),
         0);  // what rapidcheck prints
  const auto whole = rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint16_t>());
  const auto tapes = rc::gen::scale(static_cast<double>(cells) / rc::kNominalSize,
                                    rc::gen::container<std::vector<uint16_t>>(whole));
  const auto result = rc::detail::checkTestable(
      [&] {
        Tape tape(*tapes);
        property(tape);
      },
      rc::detail::TestMetadata(), params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str();
}

}  // namespace fuzz
}  // namespace ramet
