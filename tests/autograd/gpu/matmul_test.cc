// Products of matrices on a GPU by cuBLASLt and by the library's own kernel, against float64 on the
// CPU.
#include "autograd/ops/matrix/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/make/factory.h"
#include "kernels/matrix/matmul.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/measured.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/autograd/gpu/wide_positions.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/share.h"

namespace ramet::kernels {
namespace {

double tolerance(ScalarType t) {
  return t == kDouble ? 1e-13 : t == kFloat ? 1e-5 : t == kHalf ? 1e-2 : 8e-2;
}
// f on the GPU, both ways, and on the CPU in float64.
template <class F> void check(ScalarType t, const std::vector<Tensor>& in, const F& f) {
  std::vector<Tensor> gpu, wide;
  for (const Tensor& x : in) gpu.push_back(x.to(kGpu)), wide.push_back(x.to(kDouble));
  const std::vector<double> want = numbers(f(wide));
  for (bool blas : {true, false}) {
    SCOPED_TRACE(std::string(name_of(t)) + (blas ? " cuBLASLt" : " own"));
    ::ramet::cuda::set_blas_enabled(blas);
    const uint64_t searches = ::ramet::cuda::blas_searches();
    const Tensor y = f(gpu);
    expect_near(y, want, tolerance(t), "product");
    const uint64_t searched = ::ramet::cuda::blas_searches() - searches;
    if (!blas) { EXPECT_EQ(searched, 0u); }
    const uint64_t again = ::ramet::cuda::blas_searches();
    EXPECT_EQ(numbers(f(gpu)), numbers(y)) << "other bits the second time";
    if (blas) { EXPECT_LE(::ramet::cuda::blas_searches() - again, searched); }
  }
  ::ramet::cuda::set_blas_enabled(true);
}
using In = std::vector<Tensor>;

TEST(MatmulOnGpu, Layouts) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    const Tensor a = drawn({40, 36}, t, 1), b = drawn({36, 48}, t, 2), bias = drawn({48}, t, 3);
    check(t, {a, b}, [](const In& x) { return x[0].mm(x[1]); });
    check(t, {a.t().contiguous(), b}, [](const In& x) { return x[0].t().mm(x[1]); });
    check(t, {a, b.t().contiguous()}, [](const In& x) { return x[0].mm(x[1].t()); });
    check(t, {a.t().contiguous(), b.t().contiguous()},
          [](const In& x) { return x[0].t().mm(x[1].t()); });
    check(t, {a, b, bias}, [](const In& x) { return addmm(x[2], x[0], x[1], 0.5, 2); });
    check(t, {a, b.t().contiguous(), bias}, [](const In& x) { return linear(x[0], x[1], x[2]); });
    check(t, {a, b}, [](const In& x) { return x[0].slice(1, 1, 34).mm(x[1].slice(0, 2, 35)); });
    // A row that stands for all rows has no distance: the own kernel takes it.
    check(t, {a, b}, [](const In& x) { return x[0][3].expand({40, 36}).mm(x[1]); });
    check(t, {drawn({1, 1024}, t, 4), drawn({1024, 48}, t, 5)},
          [](const In& x) { return x[0].mm(x[1]).div(16); });
  }
}

// C is float32: nothing is rounded to 16 bits.
TEST(MatmulOnGpu, FloatSumsOf16Bits) {
  for (ScalarType t : {kHalf, kBFloat16})
    for (bool blas : {true, false}) {
      SCOPED_TRACE(std::string(name_of(t)) + (blas ? " cuBLASLt" : " own"));
      ::ramet::cuda::set_blas_enabled(blas);
      const Tensor a = drawn({36, 40}, t, 1), b = drawn({36, 48}, t, 2),
                   c = drawn({40, 48}, kFloat, 3), x = a.to(kGpu), y = b.to(kGpu), z = c.to(kGpu);
      MatmulArgs args{};
      args.a = x.data_ptr(), args.b = y.data_ptr(), args.c = z.data_ptr();
      args.batch = 1, args.m = 40, args.n = 48, args.k = 36;
      args.a_row = 1, args.a_col = 40, args.b_row = 48, args.b_col = 1, args.c_row = 48;
      args.alpha = 0.5, args.beta = 2, args.dtype = t, args.float_c = true;
      const uint64_t searches = ::ramet::cuda::blas_searches();
      matmul(z.stream(), args);
      if (blas) { EXPECT_EQ(::ramet::cuda::blas_searches(), searches + 1); }
      const Tensor want = addmm(c.to(kDouble), a.to(kDouble).t(), b.to(kDouble), 2, 0.5);
      expect_near(z, numbers(want), 1e-6, "product");
    }
  ::ramet::cuda::set_blas_enabled(true);
}

// The parts of a long sum may be computed separately, but not rounded to 16 bits before they are
// added.
TEST(MatmulOnGpu, LongSumsInSixteenBits) {
  for (ScalarType t : {kHalf, kBFloat16}) {
    const double large = t == kHalf ? 2048 : 256;  // the next number is two away
    const Tensor a = zeros({8, 1024}, t), b = ones({1024, 16}, t);
    a.slice(1, 0, 1).fill_(large);
    a.slice(1, 1, 2).fill_(1);
    a.slice(1, 1023, 1024).fill_(-large);
    check(t, {a, b}, [](const In& x) { return x[0].mm(x[1]); });
  }
}

// The product is the thread's first use of CUDA: memory and algorithm are there.
TEST(MatmulOnGpu, FirstThingOfAThread) {
  const Tensor a = drawn({40, 36}, kFloat, 1).to(kGpu), b = drawn({36, 48}, kFloat, 2).to(kGpu);
  const std::vector<double> want = numbers(a.mm(b));
  std::vector<double> got;
  std::string what;
  std::thread([&] {
    try {
      const Tensor y = a.mm(b);
      got = numbers(y);
    } catch (const std::exception& e) { what = e.what(); }
  }).join();
  EXPECT_EQ(what, "");
  EXPECT_EQ(got, want);
}

TEST(MatmulOnGpu, Batches) {
  for (ScalarType t : {kFloat, kBFloat16}) {
    const Tensor a = drawn({3, 33, 40}, t, 1), b = drawn({3, 40, 36}, t, 2);
    check(t, {a, b}, [](const In& x) { return x[0].bmm(x[1]); });
    check(t, {a, b}, [](const In& x) { return x[0].matmul(x[1][1]); });
    check(t, {a, b}, [](const In& x) { return x[0][1].matmul(x[1]); });
    check(t, {a, b}, [](const In& x) { return x[1].transpose(1, 2).bmm(x[0].transpose(1, 2)); });
  }
}

TEST(MatmulOnGpu, AnAlgorithmIsLookedForOnce) {
  const Tensor a = drawn({64, 64}, kFloat, 1).to(kGpu);
  a.mm(a);
  const uint64_t before = ::ramet::cuda::blas_searches();
  for (int i = 0; i < 3; ++i) a.mm(a);
  EXPECT_EQ(::ramet::cuda::blas_searches(), before);
  EXPECT_EQ(::ramet::cuda::blas_why_none(), "");
}

// Large convolutions by columns and cuBLASLt, and by the implicit product.
TEST(MatmulOnGpu, Convolutions) {
  for (ScalarType t : {kFloat, kDouble}) {
    if (t == kDouble && testing::one_repeat_in() > 1) continue;  // the same kernels
    const Tensor x = drawn({4, 16, 32, 32}, t, 1), w = drawn({32, 16, 3, 3}, t, 2),
                 bias = drawn({32}, t, 3);
    check(t, {x, w, bias}, [](const In& v) { return conv2d(v[0], v[1], v[2], 1, 1).div(8); });
    check(t, {x, w}, [](const In& v) {
      return conv2d(v[0], v[1], {}, {1, 1}, {2, 0}, {1, 2}).div(8);
    });
  }
}

// The ReLU of a product keeps a NaN, whichever kernel applies it. No function of the library asks
// for such a ReLU.
TEST(MatmulOnGpu, ReluKeepsNaN) {
  for (ScalarType t : {kFloat, kDouble, kHalf})
    for (const int64_t n : {8, 64})
      for (const bool blas : {true, false})
        for (const bool with_bias : {true, false}) {
          SCOPED_TRACE(std::string(name_of(t)) + (blas ? " cuBLASLt " : " own ") +
                       std::to_string(n) + (with_bias ? " with a bias" : ""));
          ::ramet::cuda::set_blas_enabled(blas);
          Tensor a = drawn({n, n}, t, 1);
          const Tensor b = drawn({n, n}, t, 2), bias = drawn({n}, t, 3);
          a[3].fill_(std::nan(""));
          const Tensor x = a.to(kGpu), w = b.to(kGpu), v = bias.to(kGpu), y = empty_like(x);
          kernels::MatmulArgs args{};
          args.a = x.ptr(), args.b = w.ptr(), args.c = y.ptr();
          args.bias = with_bias ? v.ptr() : nullptr;
          args.batch = 1, args.m = args.n = args.k = args.a_row = args.b_row = args.c_row = n;
          args.a_col = args.b_col = 1, args.alpha = 1;
          args.dtype = t, args.relu = true;
          kernels::matmul(y.stream(), args);
          Tensor want = a.to(kDouble).mm(b.to(kDouble));
          if (with_bias) want = want.add(bias.to(kDouble));
          const std::vector<double> got = numbers(y), sums = numbers(want);
          for (size_t i = 0; i < got.size(); ++i) {
            const bool is_nan = i / static_cast<size_t>(n) == 3;
            ASSERT_EQ(std::isnan(got[i]), is_nan) << i;
            if (is_nan) continue;
            ASSERT_NEAR(got[i], std::max(sums[i], 0.0), 20 * tolerance(t)) << i;
          }
        }
  ::ramet::cuda::set_blas_enabled(true);
}

#if RAMET_GPU_EMULATED
// Kernels that f queues on cuda:0, with these algorithms in cuBLASLt (Settings::blas_algorithms).
template <class F> uint64_t launches(int algorithms, const F& f) {
  emulated::Settings settings = emulated::settings_from_environment();
  settings.blas_algorithms = algorithms;
  const testing::Gpus gpus(settings);
  auto& state = ::ramet::cuda::device_state(0, "test");
  uint64_t count = 0;
  f([&] { state.forget_launches(); }, [&] { count = state.launches().count; });
  return count;
}

// Where cuBLASLt has no bias for a product, a kernel adds it afterwards. Where it has no algorithm
// at all, no columns are written for it. The library remembers which shapes it has asked for, so
// each shape here is new.
TEST(MatmulOnGpu, WhatCublasltHasNot) {
  for (ScalarType t : {kFloat, kDouble, kHalf})
    for (int algorithms : {2, 1, 0}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(algorithms));
      const int64_t n = 104 + 8 * algorithms;
      const Tensor a = drawn({44, 36}, t, 1), b = drawn({36, n}, t, 2), bias = drawn({n}, t, 3);
      const auto f = [](const In& x) { return linear(x[0], x[1].t(), x[2]); };
      const std::vector<double> want = numbers(f({a.to(kDouble), b.to(kDouble), bias.to(kDouble)}));
      const uint64_t count = launches(algorithms, [&](auto begin, auto end) {
        const In gpu = {a.to(kGpu), b.to(kGpu), bias.to(kGpu)};
        begin();
        const Tensor y = f(gpu);
        end();
        expect_near(y, want, tolerance(t), "product");
      });
      EXPECT_EQ(count, algorithms == 1 && t != kHalf ? 2u : 1u);
    }
  // (Doubles have their images in planes, which no product writes.)
  for (int algorithms : {2, 1, 0}) {
    SCOPED_TRACE("convolution " + std::to_string(algorithms));
    const int64_t side = 40 + 2 * algorithms;
    const Tensor x = drawn({4, 16, side, side}, kFloat, 1), w = drawn({32, 16, 3, 3}, kFloat, 2),
                 bias = drawn({32}, kFloat, 3);
    const auto f = [](const In& v) { return conv2d(v[0], v[1], v[2], 1, 1); };
    const std::vector<double> want = numbers(f({x.to(kDouble), w.to(kDouble), bias.to(kDouble)}));
    const uint64_t count = launches(algorithms, [&](auto begin, auto end) {
      const In gpu = {x.to(kGpu), w.to(kGpu), bias.to(kGpu)};
      begin();
      const Tensor y = f(gpu);
      end();
      expect_near(y, want, 8 * tolerance(kFloat), "convolution");
    });
    EXPECT_EQ(count, algorithms == 2 ? 2u : algorithms == 1 ? 3u : 1u);
  }
}
#endif

// The workspaces of the CPU's kernels are not for GPUs: there is memory for results, and for the
// parts of sums.
TEST(ConvOnGpu, TakesNoWorkspace) {
  const Tensor x = drawn({4, 8, 16, 16}, kFloat, 1).to(kGpu).requires_grad_(),
               w = drawn({8, 8, 3, 3}, kFloat, 2).to(kGpu).requires_grad_();
  constexpr int64_t image = 4 * 4 * 8 * 16 * 16, weight = 4 * 8 * 8 * 3 * 3, rounded = 512;
  const auto expect_at_most = [](int64_t bytes, const auto& f) {
    reset_peak_memory_stats(kGpu);
    const int64_t before = memory_stats(kGpu).current;
    f();
    EXPECT_LE(memory_stats(kGpu).peak - before, bytes);
  };
  Tensor y;
  std::vector<Tensor> gradients;
  expect_at_most(image + rounded, [&] { y = conv2d(x, w, {}, 1, 1); });
  const Tensor g = ones_like(y);
  expect_at_most(image + 4 * weight, [&] { gradients = autograd::grad({y}, {x, w}, {g}); });
}

// A file of measurements that decides while it lives.
struct Measurements {
  std::string path;
  explicit Measurements(const char* name) {
    const char* base = std::getenv("TEST_TMPDIR");
    path = std::string(base ? base : "/tmp") + "/" + name;
    std::remove(path.c_str());
    ::ramet::cuda::set_measurements(path);
  }
  ~Measurements() { ::ramet::cuda::set_measurements(""); }
  /// Of all that was measured one way is the quicker one.
  void say(bool second) const {
    std::ifstream in(path);
    std::string text = "ramet measurements 1\n", line;
    std::getline(in, line);
    while (std::getline(in, line))
      text += line.substr(0, line.find('\t')) + (second ? "\t2\t1\n" : "\t1\t2\n");
    std::ofstream(path) << text;
    ::ramet::cuda::set_measurements(path);
  }
};

// A table of measurements decides which way a convolution takes. What the table lacks is measured;
// if the times are exchanged, the other way is taken.
TEST(MatmulOnGpu, MeasuredConvolutions) {
  const Measurements table("measured_convolutions");
  const Tensor x = drawn({2, 8, 12, 12}, kFloat, 1), w = drawn({16, 8, 3, 3}, kFloat, 2),
               bias = drawn({16}, kFloat, 3);
  const auto convolved = [](const In& v) { return conv2d(v[0], v[1], v[2], 1, 1).div(8); };
  const std::vector<double> want =
      numbers(convolved({x.to(kDouble), w.to(kDouble), bias.to(kDouble)}));
  const In gpu = {x.to(kGpu), w.to(kGpu), bias.to(kGpu)};
  const uint64_t before = ::ramet::cuda::measurements_made();
  expect_near(convolved(gpu), want, tolerance(kFloat), "measured");
  EXPECT_EQ(::ramet::cuda::measurements_made(), before + 1);
  std::string line;
  std::ifstream in(table.path);
  std::getline(in, line), std::getline(in, line);
  ASSERT_NE(line.find(": conv2d float32 2 8 12 12 16 3 3 1 1 1 1 1 1 12 12"), std::string::npos)
      << line;
  for (const bool columns : {false, true}) {
    table.say(columns);
    auto& state = ::ramet::cuda::device_state(kGpu.index(), "test");
    state.forget_launches();
    const Tensor y = conv2d(gpu[0], gpu[1], gpu[2], 1, 1);
    EXPECT_EQ(state.launches().count, columns ? 2u : 1u)
        << "columns and the product, or one kernel";
    expect_near(y.div(8), want, tolerance(kFloat), "by the table");
    EXPECT_EQ(::ramet::cuda::measurements_made(), before + 1);
  }
  // A convolution with a result that is not dense, and one of two groups, have one way only.
  expect_near(conv2d(gpu[0], gpu[1].slice(1, 0, 4), {}, 1, 1, 1, 2).div(8),
              numbers(conv2d(x.to(kDouble), w.slice(1, 0, 4).to(kDouble), {}, 1, 1, 1, 2).div(8)),
              tolerance(kFloat), "two groups");
  EXPECT_EQ(::ramet::cuda::measurements_made(), before + 1);
}

// Both gradients of a convolution, by columns and cuBLASLt and by the implicit products, as a table
// of measurements says. Some filters have gaps between their steps; some pixels begin no window.
// Filters of one pixel need no columns. For images that lie in planes, gradients have only the
// implicit way.
TEST(MatmulOnGpu, GradientsOfConvolutions) {
  struct Case {
    std::vector<int64_t> x, w, stride, padding, dilation;
    bool planes;
    uint64_t columns, implicit;  // launches of both
  };
  const std::vector<Case> cases = {
      {{2, 8, 12, 12}, {16, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, 4, 2},
      {{3, 5, 17, 16}, {7, 5, 3, 2}, {2, 3}, {2, 0}, {1, 2}, false, 4, 2},
      {{2, 16, 9, 7}, {12, 16, 1, 1}, {1, 1}, {0, 0}, {1, 1}, false, 2, 2},
      {{2, 16, 9, 7}, {12, 16, 1, 1}, {2, 2}, {0, 0}, {1, 1}, false, 4, 2},
      {{1, 3, 6, 6}, {4, 3, 3, 3}, {1, 1}, {3, 3}, {3, 3}, true, 2, 2}};
  const Measurements table("measured_gradients");
  for (const Case& c : cases)
    for (ScalarType t : {kFloat, kDouble}) {
      SCOPED_TRACE(std::string(name_of(t)) + ", case " + std::to_string(&c - cases.data()));
      const Tensor wide_x = drawn(c.x, kDouble, 1), wide_w = drawn(c.w, kDouble, 2);
      const auto there = [&](const Tensor& wide, Device device, ScalarType type) {
        const Tensor rows = wide.to(device).to(type);
        if (c.planes) return rows;
        Tensor last = autograd::empty_channels_last(rows.size(0), rows.size(1), rows.size(2),
                                                    rows.size(3), type, device);
        last.copy_(rows);
        return last;
      };
      const auto gradients = [&](Device device, ScalarType type) {
        const Tensor x = there(wide_x, device, type).requires_grad_(),
                     w = wide_w.to(device).to(type).requires_grad_(),
                     y = conv2d(x, w, {}, c.stride, c.padding, c.dilation),
                     dy = there(drawn(y.sizes(), kDouble, 3), device, type);
        auto& state = ::ramet::cuda::device_state(kGpu.index(), "test");
        state.forget_launches();
        std::vector<Tensor> got = autograd::grad({y}, {x, w}, {dy});
        return std::pair(got, state.launches().count);
      };
      const std::vector<Tensor> want = gradients(kHost, kDouble).first;
      gradients(kGpu, t);  // measures
      for (const bool columns : {false, true}) {
        table.say(columns);
        const auto [got, launches] = gradients(kGpu, t);
        EXPECT_EQ(launches, columns ? c.columns : c.implicit);
        const WidePositions wide;
        const auto again = gradients(kGpu, t).first;
        for (size_t i = 0; i < 2; ++i) {
          expect_near(got[i].div(16), numbers(want[i].div(16)), tolerance(t),
                      columns ? "by columns" : "implicit");
          EXPECT_EQ(numbers(again[i]), numbers(got[i])) << "in 64 bits";
        }
      }
    }
}

}  // namespace
}  // namespace ramet::kernels
