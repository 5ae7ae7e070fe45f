// One seed gives one sequence on every device: the same bits on a GPU as on a CPU.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table.h"

namespace ramet {
namespace {

using op_table::bits;
using Draw = std::function<Tensor(Device, Generator)>;

const Device host(kCPU, 0), gpu(kCUDA, 0);

struct Case {
  std::string name;
  Draw draw;
};
TensorOptions on(Device device, ScalarType t = kFloat) { return TensorOptions(t).device(device); }

std::vector<Case> cases() {
  // Around the groups of the counter, and more than one block of threads has in one round.
  const int64_t odd = 100003;
  std::vector<Case> all;
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    const std::string type = std::string("_") + short_name_of(t);
    all.push_back({"uniform" + type, [=](Device d, Generator g) {
                     return empty({odd}, on(d, t)).uniform_(-2, 3, g);
                   }});
    all.push_back({"normal" + type,
                   [=](Device d, Generator g) { return empty({odd}, on(d, t)).normal_(1, 2, g); }});
    // Where the end would be reached by rounding, and where there are two or three numbers.
    all.push_back({"uniform_narrow" + type, [=](Device d, Generator g) {
                     const Tensor x = empty({odd}, on(d, t)), below = full({}, 1.01, on(host, t));
                     EXPECT_LT(x.uniform_(1, 1.01, g).max().item<double>(), below.item<double>());
                     EXPECT_LT(x.uniform_(-1e-7, 0, g).max().item<double>(), 0);
                     return x.uniform_(1000, 1001, g);
                   }});
    all.push_back({"bernoulli" + type, [=](Device d, Generator g) {
                     return empty({odd}, on(d, t)).bernoulli_(0.3, g);
                   }});
  }
  for (ScalarType t : {kLong, kInt, kByte})
    all.push_back({std::string("randint_") + short_name_of(t),
                   [=](Device d, Generator g) { return randint(3, 117, {odd}, g, on(d, t)); }});
  all.push_back({"bernoulli_tensor",
                 [=](Device d, Generator g) { return bernoulli(linspace(0, 1, odd, on(d)), g); }});
  all.push_back(
      {"randperm", [=](Device d, Generator g) { return randperm(odd, g, on(d, kLong)); }});
  // Small and large means, and so both ways to draw.
  all.push_back({"poisson", [=](Device d, Generator g) {
                   return poisson(linspace(0, 40, odd, on(d, kDouble)), g);
                 }});
  all.push_back({"binomial", [=](Device d, Generator g) {
                   return binomial(linspace(0, 90, odd, on(d)).floor(),
                                   arange(odd, on(d)).remainder(101).div(100), g);
                 }});
  all.push_back({"strided", [=](Device d, Generator g) {
                   return zeros({50, 70}, on(d)).t().uniform_(0, 1, g);
                 }});
  return all;
}

class RandomBits : public ::testing::TestWithParam<Case> {};

TEST_P(RandomBits, SameOnCpuAndGpu) {
  Generator a(host), b(gpu);
  a.set_current_seed(77), b.set_current_seed(77);
  // Twice: the offsets go on alike.
  for (int round = 0; round < 2; ++round) {
    const Tensor want = GetParam().draw(host, a), got = GetParam().draw(gpu, b);
    EXPECT_EQ(got.device(), gpu);
    EXPECT_EQ(bits(got.to(host)), bits(want)) << "round " << round;
  }
}
INSTANTIATE_TEST_SUITE_P(Draws, RandomBits, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// The gamma numbers have the same bits, and their softmax is rounded in another order. Also shapes
// below 1, which take one number more.
TEST(RandomBits, DirichletIsTheSameToRounding) {
  Generator a(host), b(gpu);
  a.set_current_seed(77), b.set_current_seed(77);
  const Tensor shapes = linspace(0.1, 4, 300 * 7, on(host, kDouble)).view({300, 7});
  for (int round = 0; round < 2; ++round) {
    const Tensor want = _sample_dirichlet(shapes, a), got = _sample_dirichlet(shapes.to(gpu), b);
    EXPECT_EQ(got.device(), gpu);
    EXPECT_LT((got.to(host) - want).abs().max().item<double>(), 1e-14);
  }
}

TEST(RandomBits, DropoutFollowsTheDevicesSeed) {
  for (ScalarType t : {kFloat, kBFloat16}) {
    const Tensor x = linspace(-1, 1, 5003, on(host, t));
    manual_seed(5);
    const Tensor want = dropout(x, 0.4, true);
    manual_seed(5);
    const Tensor got = dropout(x.to(gpu), 0.4, true);
    EXPECT_EQ(bits(got.to(host)), bits(want));
  }
}

// LibTorch refuses them, too.
TEST(RandomGenerators, OfAnotherKindOfDeviceAreRefused) {
  const auto refused = [](Device tensor, Device generator, const std::function<void()>& f) {
    std::string text = "no error";
    try {
      f();
    } catch (const Error& e) { text = e.what(); }
    EXPECT_NE(
        text.find("got a generator of " + generator.str() + " for a tensor on " + tensor.str()),
        std::string::npos)
        << text;
  };
  for (const auto& [d, other] : {std::pair(host, gpu), std::pair(gpu, host)}) {
    Generator g(other);
    const GeneratorState before = g.get_state();
    const Tensor x = zeros({3}, on(d));
    refused(d, other, [&] { x.normal_(0, 1, g); });
    refused(d, other, [&] { x.uniform_(0, 1, g); });
    refused(d, other, [&] { x.bernoulli_(0.5, g); });
    refused(d, other, [&] { bernoulli(full({3}, 0.5, on(d)), g); });
    refused(d, other, [&] { randperm(5, g, on(d, kLong)); });
    refused(d, other, [&] { randint(0, 5, {3}, g, on(d, kLong)); });
    refused(d, other, [&] { multinomial(ones({3}, on(d)), 2, true, g); });
    EXPECT_TRUE(g.get_state() == before);
    EXPECT_EQ(x.sum().item<float>(), 0);
  }
}

}  // namespace
}  // namespace ramet
