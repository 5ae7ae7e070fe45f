// Where the first NaN came from: planted ones, in the forward, in the backward, on replicas.
#include "tools/see/explain_anomalies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "autograd/autograd.h"
#include "ramet.h"
#include "tests/autograd/check.h"
#include "tests/error_text.h"

// A program's own function: what is in namespace ramet is taken for the library's, without -g.
namespace program {
[[gnu::noinline]] ramet::Tensor root_of(const ramet::Tensor& x) { return x.sqrt(); }
}  // namespace program

namespace ramet {
namespace see {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Takes the logarithm of what comes in.
struct LogImpl : nn::Cloneable<LogImpl> {
  void reset() override {}
  Tensor forward(const Tensor& x) { return x.log(); }
};
RAMET_MODULE(Log);
struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(2, 2));
    inner = register_module("inner", nn::Sequential(Log()));
    const NoGradGuard off;
    first->weight.copy_(eye(2));
    first->bias.zero_();
  }
  Tensor forward(const Tensor& x) { return inner(first(x)) * 2; }
  nn::Linear first{nullptr};
  nn::Sequential inner{nullptr};
};
RAMET_MODULE(Net);

Tensor rows(std::initializer_list<double> v) {
  return constant(v).to(kFloat).reshape({-1, 2}).contiguous();
}

TEST(ExplainAnomalies, NothingWhereAllIsWell) {
  Net net;
  ExplainAnomalies guard(net);
  net(rows({1, 2})).sum().backward();
  EXPECT_EQ(guard.report(), "");
  guard.check_gradients();
  EXPECT_TRUE(net->first->weight.grad().defined());
}

TEST(ExplainAnomalies, NamesTheFirstOperationOfTheForwardAndTheWayToTheLoss) {
  Net net;
  ExplainAnomalies guard(net);
  const Tensor loss = net(rows({1, 2, 3, -4})).sum();
  EXPECT_THAT(guard.report(), HasSubstr("made one is log in inner.0"));
  const std::string error = error_of([&] { loss.backward(); });
  EXPECT_THAT(error, AllOf(HasSubstr("[anomaly] NaN: the first operation of the forward that made "
                                     "one is log in inner.0"),
                           HasSubstr("forward"), HasSubstr(", on cpu\n")));
  EXPECT_THAT(error, HasSubstr("\n  result 0: float32[2, 2] {0, 0.6931, 1.099, nan}"));
  EXPECT_THAT(error,
              HasSubstr("\n  input 0: float32[2, 2] {1, 2, 3, -4}; made by linear in first"));
  EXPECT_THAT(error,
              HasSubstr("\n  from there to the loss: log in inner.0 -> mul(other=2) -> sum("));
  EXPECT_EQ(guard.report(), error);
  EXPECT_FALSE(net->first->weight.grad().defined());  // nothing was added to a leaf
  // The next step is right again.
  net(rows({1, 2})).sum().backward();
  EXPECT_EQ(guard.report(), "");
}

TEST(ExplainAnomalies, NamesTheLineThatCalledWithoutAModule) {
  ExplainAnomalies guard;
  const Tensor x = leaf({-1.0, 2.0});
  const Tensor y = program::root_of(x);
  EXPECT_THAT(guard.report(), HasSubstr("is sqrt ("));
  EXPECT_THAT(guard.report(), testing::AnyOf(HasSubstr("(explain_anomalies_test.cc:"),
                                             HasSubstr("(called in program::root_of")));
  EXPECT_THAT(guard.report(), HasSubstr("input 0: float64[2] {-1, 2}; a leaf"));
  ExplainAnomalies plain((AnomalyOptions().source_lines(false).rank(3)));
  const Tensor z = x.log();
  EXPECT_THAT(plain.report(), HasSubstr("NaN on rank 3: "));
  EXPECT_THAT(plain.report(), HasSubstr("is log, on cpu\n"));
}

TEST(ExplainAnomalies, ANanOfTheDataIsNobodysFault) {
  ExplainAnomalies guard;
  const Tensor x = constant({1.0, std::nan("")}), w = leaf({2.0, 3.0});
  const std::string error = error_of([&] { (x * w).exp().sum().backward(); });
  EXPECT_THAT(error, HasSubstr("no operation of the forward made the first one, it was there in an "
                               "input of mul"));
  EXPECT_THAT(error, HasSubstr("from there to the loss: mul -> exp -> sum"));
}

TEST(ExplainAnomalies, SaysWhereAnInfinityBehindItWasMade) {
  ExplainAnomalies guard;
  const Tensor x = leaf({1000.0, 1.0});
  const Tensor big = x.exp() * 2;
  const std::string error = error_of([&] { (big - big).sum().backward(); });
  EXPECT_THAT(error, HasSubstr("made one is sub"));
  EXPECT_THAT(error, HasSubstr("its infinite elements come from exp, whose result is float64[2] "
                               "from 2.71828 to 2.71828, 1 infinite"));
}

// Infinities alone are what masks are made of.
TEST(ExplainAnomalies, InfinitiesAreNoAnomaly) {
  ExplainAnomalies guard;
  const Tensor x = leaf({1000.0, 1.0});
  (x.exp() * 2).sum().backward();
  EXPECT_EQ(guard.report(), "");
}

TEST(ExplainAnomalies, ANanOfTheBackwardThatTheForwardHadNot) {
  ExplainAnomalies guard;
  const Tensor x = leaf({0.0, 4.0});
  const Tensor y = (x * 1).sqrt() * constant({0.0, 1.0});  // 0 / (2 sqrt 0)
  const std::string error = error_of([&] { y.sum().backward(); });
  EXPECT_THAT(error, HasSubstr("[anomaly] NaN: the loss has none; the first one of the backward "
                               "comes from that of sqrt, on cpu"));
  EXPECT_THAT(error, HasSubstr("gradient of its input 0: float64[2] {nan, 0.25}"));
  EXPECT_THAT(error, HasSubstr("its result in the forward: float64[2] from 0 to 2"));
  EXPECT_THAT(error, HasSubstr("its input 0 in the forward: float64[2] from 0 to 4; made by mul"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(ExplainAnomalies, ANanThatSomethingHidEndsNothingByItself) {
  ExplainAnomalies guard;
  const Tensor x = leaf({-1.0, 4.0});
  const Tensor y = x.log(), kept = where(x > 0, y, zeros_like(y));
  EXPECT_THAT(guard.report(), HasSubstr("is log"));
  const std::string error = error_of([&] { kept.sum().backward(); });
  EXPECT_EQ(error, "no error");  // 0 * 1 / -1
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0.25}));
}

TEST(ExplainAnomalies, AGradientThatWasGiven) {
  ExplainAnomalies guard;
  const Tensor x = leaf({1.0, 4.0});
  const Tensor y = x * 2;
  EXPECT_THAT(error_of([&] {
                y.backward(constant({1.0, std::nan("")}));
              }),
              HasSubstr("the gradient that backward() was given has one"));
}

TEST(ExplainAnomalies, WithoutTheForward) {
  const Tensor x = leaf({0.0, 4.0});
  const Tensor y = (x.sqrt() * constant({0.0, 1.0})).sum();
  ExplainAnomalies guard;
  EXPECT_THAT(error_of([&] { y.backward(); }),
              HasSubstr("the forward was not looked at; the first"));
}

// The same for every schedule: the first by operation, then by replica.
TEST(ExplainAnomalies, OfReplicas) {
  Net net;
  nn::parallel::DataParallel<Net> parallel(net, {"cpu:0", "cpu:1"});
  ExplainAnomalies guard(net);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::string second = error_of([&] {
      parallel(rows({1, 2, 1, 2, 3, -4, 1, 2})).sum().backward();
    });
    EXPECT_THAT(second, HasSubstr("log in inner.0"));
    EXPECT_THAT(second, HasSubstr(", on cpu:1, replica 1\n"));
    EXPECT_THAT(second, HasSubstr("-> gather"));
    const std::string both = error_of([&] {
      parallel(rows({1, -2, 1, 2, 3, -4, 1, 2})).sum().backward();
    });
    EXPECT_THAT(both, HasSubstr(", on cpu, replica 0\n"));
  }
}

TEST(ExplainAnomalies, AGradientOfElsewhere) {
  Net net;
  ExplainAnomalies guard(net);
  net(rows({1, 2})).sum().backward();
  net->first->bias.grad().fill_(std::nan(""));
  EXPECT_THAT(error_of([&] { guard.check_gradients(); }),
              AllOf(HasSubstr("the gradient of first.bias, float32[2] {nan, nan}"),
                    HasSubstr("came from another rank")));
  ExplainAnomalies without;
  EXPECT_THAT(error_of([&] { without.check_gradients(); }), HasSubstr("without a model"));
}

// Ranks that are threads have each their own.
TEST(ExplainAnomalies, OfThreads) {
  std::vector<std::string> reports(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([rank, &reports] {
      ExplainAnomalies guard(AnomalyOptions().rank(rank));
      const Tensor x = leaf({rank == 0 ? 1.0 : -1.0});
      const Tensor y = x.log();
      reports[static_cast<size_t>(rank)] = guard.report();
    });
  for (std::thread& t : ranks) t.join();
  EXPECT_EQ(reports[0], "");
  EXPECT_THAT(reports[1], HasSubstr("NaN on rank 1: the first operation"));
}

TEST(ExplainAnomalies, TakesItsHooksAway) {
  Net net;
  { ExplainAnomalies guard(net); }
  EXPECT_TRUE(!net->inner->forward_hooks() || net->inner->forward_hooks()->empty());
}

}  // namespace
}  // namespace see
}  // namespace ramet
