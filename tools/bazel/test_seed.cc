// Part of every test: what it draws is the same at every start, also by hand. RAMET_SEED moves what
// random tests draw (tests/fuzz.h) and nothing else, so that others compare the same numbers under
// each.
#include <cstdint>

namespace ramet {

// Weak: a test that draws nothing does not link the generators for this.
[[gnu::weak]] void manual_seed(uint64_t seed);

namespace {
[[gnu::constructor]] void start() {
  if (manual_seed) manual_seed(67280421310721u);  // kDefaultSeed
}
}  // namespace
}  // namespace ramet
