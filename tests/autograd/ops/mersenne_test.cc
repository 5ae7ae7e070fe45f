// LibTorch's numbers for LibTorch's seeds: digests of what PyTorch 2.15 draws, for the same calls
// (goldens/make_mersenne.py); state, replays, where the numbers stay Philox.
#include "runtime/devices/mersenne.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

constexpr Device kHome(kCPU, 0);

// The default generator is of kind kMersenne while it lives.
struct LibTorchsNumbers {
  LibTorchsNumbers() { set_generator_kind(GeneratorKind::kMersenne); }
  ~LibTorchsNumbers() { set_generator_kind(GeneratorKind::kPhilox); }
};

uint64_t digest(const void* data, size_t bytes) {
  uint64_t value = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; ++i)
    value = (value ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  return value;
}
uint64_t digest_of(const Tensor& t) {
  const Tensor rows = t.contiguous();
  return digest(rows.ptr(), static_cast<size_t>(rows.numel()) * item_size(rows.scalar_type()));
}
uint64_t digest_of_state() {
  const std::vector<uint8_t> bytes = default_generator(kHome).get_state().mersenne->bytes();
  return digest(bytes.data(), bytes.size());
}

Tensor parts(int64_t n, ScalarType t) {
  return arange(n, kDouble).mul(7).remainder(11).div(11).to(t);
}
Tensor turned(int64_t n, ScalarType t) { return empty({n, 3}, t).t(); }
Tensor gaps(int64_t n, ScalarType t) { return empty({2 * n}, t).slice(0, 0, 2 * n, 2); }
Tensor images(int64_t n, ScalarType t) { return parts(24 * n, t).view({2, n, 3, 4}); }
Tensor indices(int64_t n, ScalarType t, int64_t samples, bool replacement) {
  return parts(3 * (n + 11), t).view({3, n + 11}).add(0.125).multinomial(samples, replacement);
}

using Call = std::function<Tensor(int64_t n, ScalarType t)>;
const std::map<std::string, Call>& drawing_calls() {
  static const std::map<std::string, Call> all{
      {"rand", [](auto n, auto t) { return rand({n}, t); }},
      {"uniform_", [](auto n, auto t) { return empty({n}, t).uniform_(-0.3, 1.9); }},
      {"uniform_.turned", [](auto n, auto t) { return turned(n, t).uniform_(); }},
      {"uniform_.gaps", [](auto n, auto t) { return gaps(n, t).uniform_(); }},
      {"randn", [](auto n, auto t) { return randn({n}, t); }},
      {"normal_", [](auto n, auto t) { return empty({n}, t).normal_(0.5, 0.7); }},
      {"normal_.turned", [](auto n, auto t) { return turned(n, t).normal_(0.5, 0.7); }},
      {"normal_.gaps", [](auto n, auto t) { return gaps(n, t).normal_(); }},
      {"normal_.after_one",
       [](auto n, auto t) {
         empty({1}).normal_();
         return empty({n}, t).normal_();
       }},
      {"normal.mean", [](auto n, auto t) { return normal(parts(n, t), 0.7); }},
      {"normal.std", [](auto n, auto t) { return normal(0.7, parts(n, t)); }},
      {"normal.both", [](auto n, auto t) { return normal(parts(n, t), parts(n, t)); }},
      {"randint.10", [](auto n, auto t) { return randint(0, 10, {n}, t); }},
      {"randint.2_28", [](auto n, auto t) { return randint(-5, (1 << 28) - 5, {n}, t); }},
      {"randint.below_2_28", [](auto n, auto t) { return randint(-5, (1 << 28) - 6, {n}, t); }},
      {"randint.2_33", [](auto n, auto t) { return randint(-7, int64_t{1} << 33, {n}, t); }},
      {"random_", [](auto n, auto t) { return empty({n}, t).random_(); }},
      {"random_.to", [](auto n, auto t) { return empty({n}, t).random_(100); }},
      {"random_.from",
       [](auto n, auto t) { return empty({n}, t).random_(5, std::optional<int64_t>()); }},
      {"random_.all",
       [](auto n, auto t) { return empty({n}, t).random_(INT64_MIN, std::optional<int64_t>()); }},
      {"bernoulli_", [](auto n, auto t) { return empty({n}, t).bernoulli_(0.3); }},
      {"bernoulli_.turned", [](auto n, auto t) { return turned(n, t).bernoulli_(0.3); }},
      {"bernoulli", [](auto n, auto t) { return bernoulli(parts(n, t)); }},
      {"bernoulli_.tensor",
       [](auto n, auto t) { return turned(n, kFloat).bernoulli_(parts(n, t)); }},
      {"exponential_", [](auto n, auto t) { return empty({n}, t).exponential_(1.5); }},
      {"log_normal_", [](auto n, auto t) { return empty({n}, t).log_normal_(0.5, 0.7); }},
      {"cauchy_", [](auto n, auto t) { return empty({n}, t).cauchy_(0.5, 0.7); }},
      {"geometric_", [](auto n, auto t) { return empty({n}, t).geometric_(0.3); }},
      {"randperm", [](auto n, auto t) { return randperm(n, t); }},
      {"multinomial.one", [](auto n, auto t) { return indices(n, t, 1, false); }},
      {"multinomial.different", [](auto n, auto t) { return indices(n, t, 9, false); }},
      {"multinomial.again", [](auto n, auto t) { return indices(n, t, 9, true); }},
      {"poisson", [](auto n, auto t) { return poisson(parts(n, t).mul(40)); }},
      {"binomial",
       [](auto n, auto t) { return binomial(parts(n, t).mul(33).round(), parts(n, t).flip({0})); }},
      {"_sample_dirichlet",
       [](auto n, auto t) { return _sample_dirichlet(parts(n, t).add(0.125)); }},
      {"dropout", [](auto n, auto t) { return dropout(parts(n, t), 0.3, true); }},
      {"dropout.turned",
       [](auto n, auto t) {
         return dropout(parts(3 * n, t).view({n, 3}).t(), 0.3, true);
       }},
      {"dropout.all", [](auto n, auto t) { return dropout(parts(n, t), 1, true); }},
      {"dropout2d", [](auto n, auto t) { return feature_dropout(images(n, t), 0.3, true); }},
      {"alpha_dropout", [](auto n, auto t) { return alpha_dropout(parts(n, t), 0.3, true); }},
      {"feature_alpha_dropout",
       [](auto n, auto t) { return feature_alpha_dropout(images(n, t), 0.3, true); }},
      {"rrelu",
       [](auto n, auto t) { return rrelu(parts(n, t).sub(0.5), 0.125, 0.3, /*training=*/true); }},
  };
  return all;
}

ScalarType dtype_of(const std::string& name) {
  for (int i = 0; i < kScalarTypes; ++i)
    if (name == short_name_of(static_cast<ScalarType>(i))) return static_cast<ScalarType>(i);
  ADD_FAILURE() << name;
  return kFloat;
}

TEST(Mersenne, DrawsWhatPyTorchDraws) {
  const LibTorchsNumbers guard;
  std::ifstream golden("tests/autograd/goldens/mersenne.txt");
  std::string line, name, dtype, want;
  std::map<std::string, int> seen;
  while (std::getline(golden, line)) {
    std::istringstream words(line);
    int64_t size, after;
    if (!(words >> name >> dtype >> size >> want >> after)) continue;  // "states"
    ASSERT_TRUE(drawing_calls().count(name)) << name;
    ++seen[name];
    manual_seed(1000 + static_cast<uint64_t>(size));
    const Tensor got = drawing_calls().at(name)(size, dtype_of(dtype));
    EXPECT_EQ(digest_of(got), std::stoull(want, nullptr, 16)) << line << '\n' << got.flatten();
    EXPECT_EQ(randint(0, 1 << 27, {1}).item<int64_t>(), after) << line;
  }
  EXPECT_EQ(seen.size(), drawing_calls().size());
}

TEST(Mersenne, ItsStateHasTheBytesOfPyTorchs) {
  const LibTorchsNumbers guard;
  std::ifstream golden("tests/autograd/goldens/mersenne.txt");
  std::string line, last;
  while (std::getline(golden, line)) last = line;
  std::istringstream words(last);
  std::string states, want;
  words >> states;
  ASSERT_EQ(states, "states");
  const std::function<void()> draws[] = {[] {}, [] { rand({7}); }, [] { randn({3}); }};
  for (const auto& draw : draws) {
    ASSERT_TRUE(words >> want);
    manual_seed((uint64_t{1} << 40) + 9);
    draw();
    EXPECT_EQ(digest_of_state(), std::stoull(want, nullptr, 16));
  }
}

TEST(Mersenne, IsTheEngineOfTheStandard) {
  Mersenne ours(4321);
  std::mt19937 standard(4321);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(ours.random(), standard());
}

}  // namespace
}  // namespace ramet
