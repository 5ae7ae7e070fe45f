// An error in the data shows when a caller waits. It names the operation and leaves the device
// usable: Note [Errors in data] in runtime/devices/gpu.h.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "autograd/ops.h"
#include "runtime/base/device.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace {

const Device host(kCPU, 0), gpu(kCUDA, 0);
Tensor longs(std::vector<int64_t> values) { return tensor(values).to(gpu); }

// Queues f's work, which does not throw, then waits: the text of what comes, "" for nothing.
template <class E = Error> std::string told(const std::function<void()>& f) {
  EXPECT_NO_THROW(f());
  std::string text;
  try {
    cuda::synchronize(0);
  } catch (const E& e) { text = e.what(); }
  EXPECT_NO_THROW(cuda::synchronize(0)) << "told once";
  EXPECT_EQ(ones({3}).to(gpu).sum().item<float>(), 3) << "the device goes on";
  return text;
}
::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no \"" << part << "\" in: " << text;
}

TEST(DataErrors, AnIndexOutOfRangeNamesOperationValuePositionAndBounds) {
  const Tensor x = arange(12.f).reshape({4, 3}).to(gpu);
  Tensor y;
  const std::string text = told<IndexError>([&] { y = x.index_select(0, longs({0, 7, 2, -9})); });
  EXPECT_TRUE(has(text, "[index_select]"));
  EXPECT_TRUE(has(text, "got 7 at position 1, on cuda:0"));
  EXPECT_TRUE(has(text, "expected [0, 4)"));
  // The other rows are what they would have been.
  EXPECT_EQ(y.select(0, 2).to(host)[1].item<float>(), 7);
}

TEST(DataErrors, TheFirstOperationAndTheSmallestPositionAreNamed) {
  const Tensor x = ones({5}).to(gpu);
  const int64_t n = 100000;
  std::vector<int64_t> many(n, 1);
  many[99999] = many[70001] = many[70000] = 5;
  const Tensor late = longs(many);
  const std::string text = told([&] {
    x.gather(0, late);
    x.index_select(0, longs({99}));
  });
  EXPECT_TRUE(has(text, "[gather]"));
  EXPECT_TRUE(has(text, "got 5 at position 70000"));
}

TEST(DataErrors, EveryOperationThatLooks) {
  const Tensor x = ones({4, 3}).to(gpu);
  EXPECT_TRUE(has(told([&] { embedding(x, longs({4})); }), "[embedding]"));
  EXPECT_TRUE(has(told([&] { x.take(longs({-13})); }), "[take]"));
  EXPECT_TRUE(has(told([&] { zeros({4}).to(gpu).scatter_(0, longs({4}), 1); }), "[scatter_]"));
  EXPECT_TRUE(has(
      told([&] { zeros({4}).to(gpu).index_add_(0, longs({-1}), x.select(0, 0).narrow(0, 0, 1)); }),
      "[index_add_]"));
  EXPECT_TRUE(has(told([&] { cross_entropy_loss(x, longs({0, 1, 2, 3})); }), "number of classes"));
  EXPECT_TRUE(has(told([&] { one_hot(longs({3}), 3); }), "[one_hot]"));
  EXPECT_TRUE(has(told([&] { index(x, {longs({-5})}); }), "[index]"));
  EXPECT_TRUE(has(told([&] { longs({4}).floor_divide(longs({0})); }), "integer division by 0"));
  EXPECT_TRUE(has(told([&] { bernoulli(full({2}, 1.5).to(gpu)); }), "every p to be in [0, 1]"));
  EXPECT_TRUE(has(told([&] { binary_cross_entropy(full({2}, -1.).to(gpu), ones({2}).to(gpu)); }),
                  "between 0 and 1"));
}

TEST(DataErrors, ANaNIsOutsideEveryRange) {
  const Tensor bad = tensor({0.5f, float(NAN)}).to(gpu), fine = full({2}, 0.5).to(gpu),
               x = ones({3, 2}).to(gpu);
  EXPECT_TRUE(has(told([&] { binary_cross_entropy(bad, fine); }), "between 0 and 1 at position 1"));
  EXPECT_TRUE(has(told([&] { normal(0., bad); }), "std >= 0.0 at position 1"));
  EXPECT_TRUE(has(told([&] { cov(x, 1, {}, bad); }), "cannot be negative at position 1"));
  EXPECT_TRUE(has(told([&] { bernoulli(bad); }), "in [0, 1] at position 1"));
  EXPECT_TRUE(has(told([&] { poisson(bad); }), "to be non-negative at position 1"));
  EXPECT_TRUE(has(told([&] { quantile(x, bad); }), "in the range [0, 1] at position 1"));
  const Tensor w = ones({4, 3}).to(gpu), i = longs({1, 2});
  EXPECT_TRUE(has(told([&] { embedding_bag(w, i, longs({0, 7})); }), "got 7 at position 0"));
  EXPECT_TRUE(has(told([&] { embedding_bag(w, i, longs({0, 2, 1})); }), "ascend at position 2"));
}

// What a NaN is as an int64; no number stands for "no index".
TEST(DataErrors, TheLeastNumberIsNoIndex) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const std::string number = "got " + std::to_string(least);
  const Tensor x = ones({4, 3}).to(gpu), i = full({1}, std::nan("")).to(gpu).to(kLong),
               zero = longs({0}), row = ones({1, 3}).to(gpu);
  Tensor y = zeros({4, 3}).to(gpu);
#define F(...) [&] { __VA_ARGS__; }
  const std::vector<std::function<void()>> all = {
      F(x.gather(0, i.view({1, 1}))),
      F(x.index_select(0, i)),
      F(x.take(i)),
      F(embedding(x, i)),
      F(x.index({i})),
      F(x.index({zero, i})),
      F(y.scatter_(0, i.view({1, 1}), 1)),
      F(y.scatter_add_(0, i.view({1, 1}), row.narrow(1, 0, 1))),
      F(y.index_add_(0, i, row)),
      F(y.index_put_({zero, i}, 5.)),
      F(y.index_put_({zero, i}, row.select(1, 0), true)),
      F(one_hot(i, 3)),
      F(cross_entropy_loss(row, i)),
      F(nll_loss(row, i)),
  };
#undef F
  for (size_t k = 0; k < all.size(); ++k)
    EXPECT_TRUE(has(told<IndexError>(all[k]), number)) << "call " << k;
  EXPECT_FALSE(y.any().item<bool>());
  EXPECT_EQ(told([&] { cross_entropy_loss(row, i, {}, Reduction::Sum, least); }), "");
}

TEST(DataErrors, ACopyToTheHostTells) {
  const Tensor x = ones({4}).to(gpu);
  const Tensor y = x.gather(0, longs({8}));
  EXPECT_THROW(y.to(host), IndexError);
  EXPECT_NO_THROW(y.to(host));
}

TEST(DataErrors, AnIgnoredTargetIsNoError) {
  const Tensor x = ones({2, 3}).to(gpu);
  EXPECT_EQ(told([&] { cross_entropy_loss(x, longs({-100, 1}), {}, Reduction::Mean, -100); }), "");
}

TEST(DataErrors, BadIndicesWriteNothing) {
  const Tensor x = zeros({4}).to(gpu);
  told([&] { x.index_put_({longs({9, 1})}, tensor({5.f, 6.f}).to(gpu)); });
  EXPECT_TRUE(equal(x.to(host), tensor({0.f, 6.f, 0.f, 0.f})));
}

TEST(DataErrors, LengthsAndLabelsOfSequences) {
  const Tensor x = zeros({4, 2, 3}).to(gpu).requires_grad_();
  const int64_t least = std::numeric_limits<int64_t>::min();
  const auto text = [&](const Tensor& targets, std::vector<int64_t> steps,
                        std::vector<int64_t> lengths) {
    return told([&] { ctc_loss(x, targets, longs(steps), longs(lengths)).backward(); });
  };
  for (const int64_t wrong : {least, int64_t{-1}, int64_t{5}, -(least + 1)}) {
    const std::string number = "got " + std::to_string(wrong) + " at position 1";
    const Tensor padded = longs({1, 2, 1, 2}).view({2, 2});
    EXPECT_TRUE(has(text(padded, {4, wrong}, {2, 2}), number));
    EXPECT_TRUE(has(text(padded, {4, 4}, {2, wrong}), number));
    EXPECT_TRUE(has(text(longs({1, 2, 1, 2}), {4, 4}, {2, wrong}), number));
    EXPECT_TRUE(has(text(longs({1, wrong, 1, 2}), {4, 4}, {2, 2}), number));
    EXPECT_TRUE(has(text(longs({1, wrong, 1, 2}).view({2, 2}), {4, 4}, {2, 2}), number));
    EXPECT_EQ(text(longs({1, wrong, 1, 2}).view({2, 2}), {4, 4}, {1, 2}), "") << "it is padding";
  }
  EXPECT_TRUE(has(text(longs({1, 2, 1, 2}), {4, 4}, {2, 1}), "target_lengths add up to"));
  EXPECT_TRUE(has(text(longs({1, 2, 1, 2}), {4, 4}, {3, 3}), "target_lengths add up to"));
  // Of numbers on the host: at once.
  EXPECT_THROW(ctc_loss(x, tensor({1, 3}), {4, 4}, {1, 1}), IndexError);
  EXPECT_EQ(ctc_loss(x, tensor({1, 2}), {4, 4}, {1, 1}).device(), gpu);
}

// Another thread may wait for the device between any two steps of an operation.
TEST(DataErrors, AnotherThreadsWaitLosesNothing) {
  const Tensor x = ones({4}).to(gpu), z = ones({1}).to(gpu), bad = longs({9}), good = longs({1});
  (void)x.index_select(0, good).to(host);
  bool waited = false;
  const uint64_t observer = add_observer({{},
                                          {},
                                          [&](const KernelCall& call) {
                                            if (waited || std::string(call.name) != "check_index")
                                              return;
                                            waited = true;
                                            std::thread([&] { (void)z.item<float>(); }).join();
                                          },
                                          {}});
  const Tensor y = x.index_select(0, bad);
  remove_observer(observer);
  EXPECT_TRUE(waited);
  EXPECT_THROW(cuda::synchronize(0), IndexError);
  EXPECT_EQ(x.index_select(0, good).item<float>(), 1);
}

// Note [Which thread gets a fault] in runtime/cuda/data_faults.h.
TEST(DataErrors, ASecondThreadsFaultIsNotLostBehindTheFirst) {
  const Tensor x = ones({4}).to(gpu);
  (void)x.index_select(0, longs({1})).item<float>();
  for (const bool first_waits_first : {false, true}) {
    std::atomic<int> step{0};
    const auto until = [&](int n) {
      while (step < n) std::this_thread::yield();
    };
    const auto text = [] {
      try {
        cuda::synchronize(0);
      } catch (const IndexError& e) { return std::string(e.what()); }
      return std::string("nothing");
    };
    std::thread first([&] {
      (void)x.gather(0, longs({0, 8}));
      step = 1;
      until(2);
      EXPECT_TRUE(has(text(), "[gather] index out of range: got 8 at position 1"));
    });
    until(1);
    (void)x.index_select(0, longs({9}));
    if (first_waits_first) step = 2, first.join();
    EXPECT_TRUE(has(text(), "[index_select] index out of range: got 9 at position 0"));
    if (!first_waits_first) step = 2, first.join();
    EXPECT_EQ(text(), "nothing");
    EXPECT_EQ(x.index_select(0, longs({1})).item<float>(), 1);
  }
}

// A caller that reads, on another GPU, a result of the bad data has waited for it, too.
TEST(DataErrors, AReaderOnAnotherGpuIsTold) {
  const Device second(kCUDA, 1);
  const Tensor x = ones({4}).to(second), bad = tensor({9}).to(second), mine = ones({3}).to(gpu);
  (void)x.to(gpu).sum().item<float>();
  const Tensor y = x.index_select(0, bad).to(gpu).sum();
  std::string text;
  try {
    (void)y.item<float>();
  } catch (const IndexError& e) { text = e.what(); }
  EXPECT_TRUE(has(text, "[index_select] index out of range: got 9 at position 0, on cuda:1"));
  EXPECT_NO_THROW(y.item<float>()) << "told once";
  EXPECT_NO_THROW(cuda::synchronize(1));
  (void)x.index_select(0, bad);  // no business of cuda:0's
  EXPECT_EQ(mine.sum().item<float>(), 3);
  EXPECT_THROW(cuda::synchronize(1), IndexError);
}

}  // namespace
}  // namespace ramet
