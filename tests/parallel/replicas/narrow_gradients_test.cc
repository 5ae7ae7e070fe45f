// ReduceAdd of 16-bit gradients: sums over replicas are float inside and rounded once.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "autograd/autograd.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::ReduceOrder;

// The dtypes of a bucket, and how many elements each parameter has.
const ScalarType kMixed[] = {kBFloat16, kFloat, kHalf, kBFloat16, kHalf, kHalf};
const int64_t kNumels[] = {65, 7, 300, 3, 1, 40};
constexpr size_t kParameters = 6;

// The gradient of w<i> in a replica is the sum of its rows x[i].
struct ManyDtypesImpl : nn::Cloneable<ManyDtypesImpl> {
  ManyDtypesImpl() { ManyDtypesImpl::reset(); }
  void reset() override {
    w.clear();
    for (size_t i = 0; i < kParameters; ++i)
      w.push_back(register_parameter("w" + std::to_string(i), filled({kNumels[i]}, 1, kMixed[i])));
  }
  Tensor forward(const std::vector<Tensor>& x) {
    Tensor sum;
    for (size_t i = 0; i < kParameters; ++i) {
      const Tensor part = (w[i] * x[i]).sum().to(kFloat).view({1});
      sum = i ? sum + part : part;
    }
    return sum;
  }
  std::vector<Tensor> w;
};
RAMET_MODULE(ManyDtypes);

// A row for each shard: numbers of several magnitudes, so that every rounding shows.
std::vector<Tensor> rows_of(int shards, uint64_t seed) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < kParameters; ++i) {
    const Tensor x = varied({shards, kNumels[i]}, seed + i);
    const Tensor scale = make({shards, 1}, Values(static_cast<size_t>(shards), 1));
    for (int k = 0; k < shards; ++k) scale.data_ptr<float>()[k] = static_cast<float>(1 << (3 * k));
    out.push_back((x * scale).to(kMixed[i]));
  }
  return out;
}

// a[0] + a[1] + ... from left to right, or a[0..n/2) and a[n/2..n) first, in float.
float sum_of(const std::vector<float>& a, bool tree) {
  if (!tree || a.size() == 1) {
    float sum = a[0];
    for (size_t i = 1; i < a.size(); ++i) sum += a[i];
    return sum;
  }
  const auto half = a.begin() + static_cast<std::ptrdiff_t>(a.size() / 2);
  return sum_of({a.begin(), half}, true) + sum_of({half, a.end()}, true);
}
double rounded_to(ScalarType t, float x) {
  if (t == kBFloat16) return static_cast<float>(BFloat16(x));
  if (t == kHalf) return static_cast<float>(Half(x));
  return x;
}

// What becomes of a gradient when the sum over the shards is added to it.
Values expected_of(const Values& before, const Tensor& rows, bool tree) {
  const ScalarType t = rows.scalar_type();
  const auto shards = static_cast<size_t>(rows.size(0)), n = static_cast<size_t>(rows.size(1));
  const Values all = values(rows);
  Values out;
  for (size_t i = 0; i < n; ++i) {
    std::vector<float> leaves;
    for (size_t k = 0; k < shards; ++k) leaves.push_back(static_cast<float>(all[k * n + i]));
    const double sum = rounded_to(t, sum_of(leaves, tree));
    const auto both = static_cast<float>(before.empty() ? sum : before[i] + sum);
    out.push_back(before.empty() ? sum : rounded_to(t, both));
  }
  return out;
}

// Two backwards, the second on top of the first, for two steps. `run` gives the loss.
void expect_rounded_once(ManyDtypes& m, int shards, bool tree,
                         const std::function<Tensor(const std::vector<Tensor>&)>& run) {
  for (int step = 0; step < 2; ++step) {
    m->zero_grad();
    std::vector<Values> so_far(kParameters);
    for (uint64_t backward = 0; backward < 2; ++backward) {
      const std::vector<Tensor> rows =
          rows_of(shards, 100 * static_cast<uint64_t>(step) + 10 * backward + 1);
      run(rows).sum().backward();
      for (size_t i = 0; i < kParameters; ++i) {
        so_far[i] = expected_of(so_far[i], rows[i], tree);
        EXPECT_EQ(m->w[i].grad().scalar_type(), kMixed[i]);
        EXPECT_EQ(values(m->w[i].grad()), so_far[i])
            << "w" << i << ", " << shards << " shards, step " << step;
      }
    }
  }
}

TEST(NarrowGradients, InTheOrderOfTheReplicas) {
  for (const int n : {1, 2, 3, 4})
    for (const Device home : {kHost, d(0)}) {
      ManyDtypes m;
      m->to(home);
      DataParallel<ManyDtypes> dp(m, many(n));
      expect_rounded_once(m, n, false, [&](const auto& rows) { return dp(rows); });
    }
}

// Four shards on one, two and four devices: the same tree.
TEST(NarrowGradients, AlongOneTree) {
  for (const int n : {1, 2, 4}) {
    ManyDtypes m;
    DataParallelOptions options;
    options.devices = many(n);
    options.order = ReduceOrder::tree(4);
    DataParallel<ManyDtypes> dp(m, options);
    expect_rounded_once(m, 4, true, [&](const auto& rows) { return dp(rows); });
  }
}

TEST(NarrowGradients, OfReplicasThatTheProgramCalls) {
  for (const int n : {2, 4}) {
    ManyDtypes m;
    const auto replicas = replicate(m, many(n));
    expect_rounded_once(m, n, false, [&](const auto& rows) {
      Tensor sum;
      for (int k = 0; k < n; ++k) {
        std::vector<Tensor> mine;
        for (const Tensor& x : rows) mine.push_back(x.slice(0, k, k + 1).to(d(k)));
        ManyDtypes replica = replicas[static_cast<size_t>(k)];
        const Tensor part = replica->forward(mine).to(kHost);
        sum = k ? sum + part : part;
      }
      return sum;
    });
  }
}

// Hooks and recorded gradients take other ways to the sum.
TEST(NarrowGradients, WithHooksAndCreateGraph) {
  ManyDtypes m;
  DataParallel<ManyDtypes> dp(m, many(4));
  const std::vector<Tensor> rows = rows_of(4, 7);
  std::vector<Tensor> parameters = m->parameters();
  const auto gradients =
      autograd::grad({dp(rows).sum()}, parameters, {}, {}, /*create_graph=*/true);
  for (size_t i = 0; i < kParameters; ++i)
    EXPECT_EQ(values(gradients[i].detach()), expected_of({}, rows[i], false)) << i;
  int seen = 0;
  dp.replicas().register_post_reduce_hook([&](const std::string&, const Tensor&) {
    ++seen;
    return Tensor();
  });
  dp(rows).sum().backward();
  EXPECT_EQ(seen, static_cast<int>(kParameters));
  for (size_t i = 0; i < kParameters; ++i)
    EXPECT_EQ(values(m->w[i].grad()), expected_of({}, rows[i], false)) << i;
}

// 256 + 1 + 1 + 1 = 259 goes to 260, and 2048 + 1 + 1 + 1 = 2051 to 2052. Rounded after each
// addition, both stay what they are.
TEST(NarrowGradients, NumbersThatShowIt) {
  for (const bool tree : {false, true})
    for (const auto& [dtype, first, expected] :
         {std::tuple(kBFloat16, 256., 260.), std::tuple(kHalf, 2048., 2052.)}) {
      Times m(1);
      m->to(dtype);
      DataParallelOptions options;
      options.devices = many(4);
      if (tree) options.order = ReduceOrder::tree(4);
      DataParallel<Times> dp(m, options);
      dp(make({first, 1, 1, 1}, dtype)).to(kFloat).sum().backward();
      EXPECT_EQ(values(m->w.grad()), Values{expected});
      dp(make({0, 3, 0, 0}, dtype)).to(kFloat).sum().backward();
      EXPECT_EQ(values(m->w.grad()), Values{dtype == kHalf ? 2056. : 264.});  // 2055 and 263
    }
}

}  // namespace
}  // namespace ramet
