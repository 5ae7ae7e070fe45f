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
#include "autograd/checkpoint.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"
#include "tests/runtime/expect_error.h"

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

TEST(Mersenne, AStateRestoresTheNumbers) {
  Generator own(kHome, 5, GeneratorKind::kMersenne);
  EXPECT_EQ(own.kind(), GeneratorKind::kMersenne);
  randn({3}, own);  // one of a pair is kept
  const GeneratorState state = own.get_state();
  const Tensor bytes = state;
  EXPECT_EQ(bytes.numel(), 5056);
  const Tensor want = randn({5}, own);
  EXPECT_FALSE(own.get_state() == state);
  own.set_state(bytes);
  EXPECT_TRUE(own.get_state() == state);
  EXPECT_TRUE(randn({5}, own).equal(want));
  Generator copy = own.clone();
  EXPECT_TRUE(rand({20}, copy).equal(rand({20}, own)));
  Generator philox(kHome, 9);
  EXPECT_EQ(philox.kind(), GeneratorKind::kPhilox);
  philox.set_state(state);  // takes the kind over
  EXPECT_TRUE(randn({5}, philox).equal(want));
  const Tensor two = Generator(kHome, 9).get_state();
  EXPECT_EQ(two.numel(), 16);
  philox.set_state(two);
  EXPECT_EQ(philox.kind(), GeneratorKind::kPhilox);
  EXPECT_EQ(philox.current_seed(), 9u);
}

TEST(Mersenne, WrongStatesAndDevicesAreRefused) {
  Generator own(kHome, 5, GeneratorKind::kMersenne);
  EXPECT_ERROR(own.set_state(zeros({100}, kByte)), Error, "got 100 bytes, expected 5056");
  EXPECT_ERROR(own.set_state(zeros({5056}, kByte)), Error, "[Mersenne] state: got 0 draws");
  EXPECT_ERROR(own.set_state(zeros({5056})), Error, "ByteTensor");
  const Tensor far = zeros({5056}, kByte);
  far[8] = 1;
  far[12] = 1;
  far[18] = 1;  // next word: 65536
  EXPECT_ERROR(own.set_state(far), Error, "next word 65536");
  EXPECT_ERROR(Generator(Device(kCPU, 1), 5, GeneratorKind::kMersenne), Error,
               "got kMersenne for cpu:1");
  EXPECT_ERROR(Generator(Device(kCPU, 1)).set_state(own.get_state()), Error,
               "got a state of kMersenne");
}

TEST(Mersenne, OtherDevicesAndReplicasDrawPhilox) {
  const auto drawn = [] {
    manual_seed(4);
    const Tensor other = rand({10}, Device(kCPU, 1)).to(kHome);
    RandomRegion region(kHome);
    const ReplicaRandomGuard inside(region.shard(1, 4, 4));
    return cat({other, rand({4, 5}).flatten(), dropout(ones({4, 5}), 0.5, true).flatten()});
  };
  const Tensor philox = drawn();
  const LibTorchsNumbers guard;
  EXPECT_TRUE(drawn().equal(philox));
  manual_seed(4);
  EXPECT_FALSE(rand({10}).equal(philox.slice(0, 0, 10)));
}

TEST(Mersenne, APartThatIsComputedAgainDrawsTheSame) {
  const LibTorchsNumbers guard;
  const auto dropped = [](const Tensor& t) { return dropout(t, 0.5, true); };
  manual_seed(3);
  const Tensor plain = dropped(ones({100}));
  const int64_t after = randint(0, 1 << 27, {1}).item<int64_t>();
  manual_seed(3);
  const Tensor x = ones({100}).requires_grad_();
  const Tensor y = autograd::checkpoint(dropped, x);
  EXPECT_TRUE(y.equal(plain));
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(plain));
  EXPECT_EQ(randint(0, 1 << 27, {1}).item<int64_t>(), after);
}

TEST(Mersenne, ACaptureNamesTheOperation) {
  Captured dropped([](const Tensor& x) { return dropout(x, 0.5, true); });
  Captured shuffled([](const Tensor& x) { return x.add(randperm(4)); });
  const Tensor x = ones({4});
  dropped(x);
  dropped(x);
  const LibTorchsNumbers guard;  // now what was captured does not hold any more
  EXPECT_ERROR(dropped(x), Error, "[dropout]");
  EXPECT_ERROR(shuffled(x), Error, "[randperm]");
}

TEST(Mersenne, EmptyTensorsDrawNothing) {
  const LibTorchsNumbers guard;
  manual_seed(6);
  const uint64_t before = digest_of_state();
  rand({0});
  randn({3, 0});
  randperm(0);
  empty({0}).exponential_();
  dropout(empty({0}), 0.5, true);
  poisson(empty({0}));
  EXPECT_EQ(digest_of_state(), before);
  EXPECT_EQ(rand({}).dim(), 0);
}

TEST(Mersenne, IsTheEngineOfTheStandard) {
  Mersenne ours(4321);
  std::mt19937 standard(4321);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(ours.random(), standard());
}

}  // namespace
}  // namespace ramet
