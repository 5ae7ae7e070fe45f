// What every row goes through on cuda:0. It has the reference's values, the CPU's gradients and
// gradients of gradients, and twice the same bits. There is no wait for the device inside the
// operation, and many threads where there is much to do. The CPU's checks of dtypes, strides,
// layouts, in-place and out forms also run.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "autograd/autograd.h"
#include "autograd/ops/make/copy.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/copies.h"
#include "runtime/devices/gpu.h"
#include "tests/autograd/gpu/launch_record.h"
#include "tests/autograd/table/op_checks.h"
#include "tests/autograd/table/op_table_suite.h"
#include "tests/runtime/cuda/driver_calls.h"

namespace ramet {
namespace op_table {
namespace {

const Device gpu(kCUDA, 0), host(kCPU, 0);

// Copies to the host and waits for the device that f() makes. Copies from the host are not counted:
// the callers make them, for seeds.
template <class F> uint64_t waits_of(const F& f) {
  const uint64_t before = host_waits();
  f();
  return host_waits() - before;
}

std::vector<Tensor> absolute(V tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors)
    out.push_back(is_floating(t.scalar_type()) ? t.detach().abs() : t);
  return out;
}

// expect_close. Where the row adds products up, the bound is a part of the sum of absolute values.
// The error of a sum in float32 is a part of that, whatever cancels (Higham 2002, 3.1).
void expect_sum_close(const Tensor& got, const Tensor& want, const Tensor& size, double slack) {
  if (!size.defined()) return expect_close(got, plain_of(want), slack);
  const Tensor error = got.to(host, kDouble).sub(want).abs(),
               most = size.clamp_min(1).mul(slack * (got.scalar_type() == kDouble ? 1e-12 : 2e-6));
  EXPECT_TRUE(error.le(most).all().item<bool>())
      << error.sub(most).max().item<double>() << " too far";
}

// Kernels that may have few threads although there are 10^6 elements. Some of what their operation
// reads is small: an index, a mask, a 0-dim loss, a weight of each class, channel or row. Each
// gives a thread a bounded number of elements. Exceptions are cross_entropy's sums of class weights
// and of the partial sums of groups of 64 rows.
const std::set<std::string> few_elements = {"add",
                                            "arange",
                                            "batch_norm",
                                            "check_index",
                                            "cross_entropy",
                                            "cross_entropy_backward",
                                            "div",
                                            "eq",
                                            "fill",
                                            "index",
                                            "index_add",
                                            "cross_entropy_consume",
                                            "index_put",
                                            "isinf",
                                            "log",
                                            "mask_count",
                                            "mul",
                                            "ne",
                                            "neg",
                                            "nonzero",
                                            "resample_weights",
                                            "sort_pairs",
                                            "where"};

uint64_t most_threads(const std::vector<KernelLaunch>& launches) {
  uint64_t most = 0;
  for (const KernelLaunch& l : launches) most = std::max(most, l.threads);
  return most;
}
// At least one launch has 1,024 threads or more. So has every launch, with two exceptions. These
// are the kernels above, and launches that combine partial results of as many threads of the same
// kernel.
void expect_many_threads(const std::vector<KernelLaunch>& launches) {
  if (!launches.empty()) { EXPECT_GE(most_threads(launches), 1024u); }
  std::set<std::string> wide;
  for (const KernelLaunch& l : launches) {
    if (l.threads >= 1024) wide.insert(l.kernel);
    else
      EXPECT_TRUE(wide.count(l.kernel) || few_elements.count(l.kernel))
          << l.threads << " threads of kernel " << l.kernel;
  }
}

enum class Times { kOnce, kTwice };
/// `launched`, if given: what the backward alone queues.
void expect_gradients(const Row& row, V in, V on_host, Times times,
                      std::vector<KernelLaunch>* launched = nullptr) {
  const std::vector<Tensor> want = gradients(row.call, on_host),
                            sizes = row.sums_products ? gradients(row.call, absolute(on_host))
                                                      : std::vector<Tensor>(want.size());
  std::vector<Tensor> got, again;
  const Call then_record = [&](V leaves) {
    Tensor y = row.call(leaves);
    if (launched) record_launches();
    return y;
  };
  const uint64_t waits = waits_of([&] { got = gradients(then_record, in); });
  if (launched) *launched = recorded_launches();
  if (times == Times::kTwice) again = gradients(row.call, in);
  if (row.reads_host.empty()) { EXPECT_EQ(waits, 0u); }
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].defined(), want[k].defined());
    if (!want[k].defined()) continue;
    EXPECT_EQ(got[k].device(), gpu);
    if (times == Times::kTwice) {
      EXPECT_EQ(bits(got[k]), bits(again[k])) << "another gradient the second time";
    }
    expect_sum_close(got[k].to(host), want[k], sizes[k], 8 * row.slack);
  }
}

bool is_transposed(const Row& row) { return row.name.find("conv_transpose") == 0; }
bool is_convolution(const Row& row) { return row.name.rfind("conv", 0) == 0; }
bool is_attention(const Row& row) { return row.name.rfind("scaled_dot_product", 0) == 0; }

// `large` with as many elements as it takes, in an input or the result. It grows along dimensions
// that the row does not mix. Where there are none, each input with as many lines as the first gets
// more lines.
Sample million(const Row& row) {
  constexpr int64_t kElements = 1000000;
  Sample s = row.large;
  // More channels out of fewer images: as many elements by fewer products, and each takes a while.
  if (is_transposed(row)) {
    s[1].sizes[1] *= 4;
    for (size_t k = 2; k < s.size(); ++k) s[k].sizes[0] *= 4;
  } else if (is_convolution(row)) {
    for (size_t k = 1; k < s.size(); ++k) s[k].sizes[0] = 16;
  }
  // Heads and lines as wide and as many as a tile's, and so fewer heads: a tile that is nearly
  // empty takes as long.
  if (is_attention(row))
    for (size_t k = 0; k < s.size(); ++k) {
      Index& sizes = s[k].sizes;
      sizes[sizes.size() - 2] *= 2;
      sizes.back() *= k < 3 ? 4 : 2;  // the last is the mask
    }
  int64_t most = row.call(operands(s, row.own_type()).tensors).numel();
  for (const Input& in : s) most = std::max(most, count(in.sizes));
  const int64_t factor = (kElements + most - 1) / most;
  if (s.size() == row.slices.size()) {
    for (size_t k = 0; k < s.size(); ++k)
      if (row.slices[k] >= 0) s[k].sizes[static_cast<size_t>(row.slices[k])] *= factor;
    return s;
  }
  if (s[0].sizes.empty()) return {};
  const int64_t lines = s[0].sizes[0];
  for (Input& in : s)
    if (!in.sizes.empty() && in.sizes[0] == lines) in.sizes[0] *= factor;
  return s;
}

// While it lives, products are the library's own: the threads of cuBLASLt's kernels cannot be
// counted. Convolutions still use cuBLASLt, because of the time they take: other kernels make their
// columns.
class OwnProducts {
 public:
  OwnProducts() { cuda::set_blas_enabled(false); }
  ~OwnProducts() { cuda::set_blas_enabled(before_); }
  OwnProducts(const OwnProducts&) = delete;
  OwnProducts& operator=(const OwnProducts&) = delete;

 private:
  const bool before_ = cuda::blas_enabled();
};

// The tensors as float64, where they are floating-point numbers.
std::vector<Tensor> widened(V tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(is_floating(t.scalar_type()) ? t.to(kDouble) : t);
  return out;
}

// The row with counted waits: its operation must not wait for the device, also in place and with an
// `out`, whichever check calls it. What a check itself copies is not counted.
Row not_waiting(Row row) {
  if (!row.reads_host.empty()) return row;
  const auto counted = [](const auto& f) {
    return [f](auto&&... arguments) {
      Tensor y;
      const auto call = [&] { y = f(arguments...); };
      EXPECT_EQ(waits_of(call), 0u) << "the operation waits for the device";
      return y;
    };
  };
  row.call = counted(row.call);
  if (row.in_place) row.in_place = counted(row.in_place);
  if (row.out) row.out = counted(row.out);
  return row;
}

// Values and gradients of a large sample against float64, by many threads.
void check_large(const Row& row, const Sample& sample) {
  const ScalarType dtype = row.own_type();
  SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
  const Operands o = operands(sample, dtype);
  const std::vector<Tensor> in = moved(o.tensors, gpu);
  record_launches();
  const Tensor y = row.call(in);
  const std::vector<KernelLaunch> forward = recorded_launches();
  if (forward.empty())
    EXPECT_TRUE(!row.reads_host.empty() || y.may_overlap(in[0])) << "who computed it?";
  else if (row.few_threads.empty()) expect_many_threads(forward);
  else EXPECT_LT(most_threads(forward), 1024u) << "needs no reason: " << row.few_threads;
  const std::vector<Tensor> wide = widened(o.tensors);
  expect_sum_close(y.to(host), row.call(wide),
                   row.sums_products ? row.call(absolute(wide)) : Tensor(), row.slack);
  if (!row.differentiable || !is_floating(dtype)) return;
  std::vector<KernelLaunch> backward;
  expect_gradients(row, in, wide, Times::kOnce, &backward);
  if (backward.empty()) { EXPECT_TRUE(row.constant_gradient) << "who computed it?"; }
  if (row.few_threads.empty()) expect_many_threads(backward);
}

#define RAMET_NEED_GPU()                                                   \
  do {                                                                     \
    gpu::Library* library = gpu::library();                                \
    if (library->device_count() == 0) GTEST_SKIP() << library->why_none(); \
  } while (0)

}  // namespace

TEST_P(OpTable, GpuValuesAndGradients) {
  RAMET_NEED_GPU();
  const Row& row = GetParam();
  for (ScalarType dtype : compared_types(row)) {
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const Operands o = operands(sample, dtype);
      const std::vector<Tensor> in = moved(o.tensors, gpu);
      Tensor y, again;
      const uint64_t sent = cuda::copy_counts().to_device;
      const uint64_t waits = waits_of([&] { y = row.call(in), again = row.call(in); });
      const bool copies = cuda::copy_counts().to_device != sent,
                 nothing = y.numel() == 0 || in.front().numel() == 0;
      EXPECT_TRUE((waits > 0) == !row.reads_host.empty() || (nothing && waits == 0))
          << waits << " waits; " << row.reads_host;
      EXPECT_TRUE(copies == row.host_computes || (nothing && !copies))
          << "copies from the host: " << copies << "; " << row.reads_host;
      EXPECT_EQ(y.device(), gpu);
      expect_close(y.to(host), expected(row, o.plain), row.slack);
      EXPECT_EQ(bits(y.to(host)), bits(again.to(host)));
      if (row.differentiable && is_floating(dtype))
        expect_gradients(row, in, o.tensors, Times::kTwice);
    }
  }
}

TEST_P(OpTable, GpuSecondDerivatives) {
  RAMET_NEED_GPU();
  const Row& row = GetParam();
  if (!row.differentiable) GTEST_SKIP() << "no gradient";
  if (row.constant_gradient) GTEST_SKIP() << "the gradient has no history";
  if (row.first_order) GTEST_SKIP() << "once only, as on the CPU";
  if (!row.takes(kDouble)) GTEST_SKIP() << "does not take float64";
  const std::vector<Tensor> on_host = operands(row.samples.front(), kDouble).tensors,
                            want = second_gradients(row.call, on_host);
  std::vector<Tensor> got;
  const std::vector<Tensor> in = moved(on_host, gpu);
  const uint64_t waits = waits_of([&] { got = second_gradients(row.call, in); });
  if (!row.gradient_asks.empty()) {
    EXPECT_GT(waits, 0u) << "needs no reason: " << row.gradient_asks;
  } else if (row.reads_host.empty()) {
    EXPECT_EQ(waits, 0u);
  }
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].defined(), want[k].defined()) << "input " << k;
    if (want[k].defined()) expect_close(got[k], plain_of(want[k]), 64 * row.slack);
  }
}

TEST_P(OpTable, GpuRefusals) {
  RAMET_NEED_GPU();
  check_refusals(GetParam(), gpu);
}
// In the dtypes that GpuValuesAndGradients leaves out.
TEST_P(OpTable, GpuOtherTypes) {
  RAMET_NEED_GPU();
  const Row row = not_waiting(GetParam());
  const std::vector<ScalarType> done = compared_types(row);
  for (ScalarType dtype : every_type(row)) {
    if (std::find(done.begin(), done.end(), dtype) != done.end()) continue;
    SCOPED_TRACE(short_name_of(dtype));
    const Operands o = operands(row.samples.front(), dtype);
    const Tensor y = row.call(moved(o.tensors, gpu));
    ASSERT_EQ(y.scalar_type(), row.result(dtype));
    ASSERT_NO_FATAL_FAILURE(expect_close(y, expected(row, o.plain), row.slack));
  }
}
TEST_P(OpTable, GpuSpecialValues) {
  RAMET_NEED_GPU();
  check_special_values(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuPositions) {
  RAMET_NEED_GPU();
  if (GetParam().sums_products) GTEST_SKIP() << "by the sizes goes in which order it is added up";
  check_positions(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuStrides) {
  RAMET_NEED_GPU();
  check_strides(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuImages) {
  RAMET_NEED_GPU();
  check_images(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuInPlace) {
  RAMET_NEED_GPU();
  check_in_place(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuOut) {
  RAMET_NEED_GPU();
  check_out(not_waiting(GetParam()), gpu);
}
TEST_P(OpTable, GpuCaptured) {
  RAMET_NEED_GPU();
  check_captured(GetParam(), gpu);
}

TEST_P(OpTable, GpuScalars) {
  RAMET_NEED_GPU();
  check_scalars(GetParam(), gpu);
}

TEST_P(OpTable, GpuMillion) {
  RAMET_NEED_GPU();
  const Row& row = GetParam();
  if (!row.no_million.empty()) GTEST_SKIP() << row.no_million;
  if (row.view && row.large.empty()) GTEST_SKIP() << "a view: nothing is computed";
  const Sample sample = million(row);
  ASSERT_FALSE(sample.empty()) << "no sample of 10^6 elements, and no reason";
  {
    std::optional<OwnProducts> own;
    if (!is_convolution(row)) own.emplace();
    check_large(row, sample);
  }
  // Long sums with few results are cuBLASLt's: of the library's own products a block has a tile of
  // the result, however long its sums are.
  for (const Sample& slim : row.slim_samples) check_large(row, slim);
}

}  // namespace op_table
}  // namespace ramet
