// What every row goes through on cuda:0: the reference's values and the CPU's gradients, twice the
// same bits, no wait for the device inside the operation, and many threads where there is much to
// do.
#include <gtest/gtest.h>

#include <string>

#include "autograd/ops/copy.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/gpu.h"
#include "tests/autograd/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

const Device gpu(kCUDA, 0), host(kCPU, 0);

std::vector<Tensor> moved(V tensors, Device to) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.to(to));
  return out;
}

// Copies to the host that f() makes.
template <class F> uint64_t reads_of(const F& f) {
  const uint64_t before = cuda::copy_counts().to_host;
  f();
  return cuda::copy_counts().to_host - before;
}

std::vector<Tensor> absolute(V tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors)
    out.push_back(is_floating(t.scalar_type()) ? t.detach().abs() : t);
  return out;
}

// expect_close; where the row adds products up, against what the absolute values add up to: the
// error of a sum in float32 is a part of that, whatever cancels (Higham 2002, 3.1).
void expect_sum_close(const Tensor& got, const Tensor& want, const Tensor& size, double slack) {
  if (!size.defined()) return expect_close(got, plain_of(want), slack);
  const Tensor error = got.to(host, kDouble).sub(want).abs(),
               most = size.clamp_min(1).mul(slack * (got.scalar_type() == kDouble ? 1e-12 : 2e-6));
  EXPECT_TRUE(error.le(most).all().item<bool>())
      << error.sub(most).max().item<double>() << " too far";
}

void expect_gradients(const Row& row, V in, V on_host) {
  const std::vector<Tensor> want = gradients(row.call, on_host),
                            sizes = row.sums_products ? gradients(row.call, absolute(on_host))
                                                      : std::vector<Tensor>(want.size());
  std::vector<Tensor> got;
  const uint64_t reads = reads_of([&] { got = gradients(row.call, in); });
  if (row.reads_host.empty()) { EXPECT_EQ(reads, 0u); }
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].defined(), want[k].defined());
    if (want[k].defined()) expect_sum_close(got[k].to(host), want[k], sizes[k], 8 * row.slack);
  }
}

// `large` with as many elements as it takes, in an input or the result, along dimensions that rows
// do not mix; empty where nobody knows which.
Sample million(const Row& row) {
  constexpr int64_t kElements = 1000000;
  Sample s = row.large;
  if (s.empty() || !row.no_million.empty()) return {};
  int64_t most = row.call(operands(s, row.own_type()).tensors).numel();
  for (const Input& in : s) most = std::max(most, count(in.sizes));
  const int64_t factor = (kElements + most - 1) / most;
  if (s.size() == row.slices.size()) {
    for (size_t k = 0; k < s.size(); ++k)
      if (row.slices[k] >= 0) s[k].sizes[static_cast<size_t>(row.slices[k])] *= factor;
    return s;
  }
  for (Input& in : s) {
    if (in.sizes != s[0].sizes || in.sizes.empty()) return {};
    in.sizes[0] *= factor;
  }
  return s;
}

// The tensors as float64, where they are floating-point numbers.
std::vector<Tensor> widened(V tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(is_floating(t.scalar_type()) ? t.to(kDouble) : t);
  return out;
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
      const uint64_t reads = reads_of([&] { y = row.call(in), again = row.call(in); });
      if (row.reads_host.empty()) EXPECT_EQ(reads, 0u);
      else EXPECT_TRUE(reads > 0 || y.numel() == 0) << "needs no reason: " << row.reads_host;
      EXPECT_EQ(y.device(), gpu);
      expect_close(y.to(host), expected(row, o.plain), row.slack);
      EXPECT_EQ(bits(y.to(host)), bits(again.to(host)));
      if (row.differentiable && is_floating(dtype)) expect_gradients(row, in, o.tensors);
    }
  }
}

TEST_P(OpTable, GpuMillion) {
  RAMET_NEED_GPU();
  const Row& row = GetParam();
  const Sample sample = million(row);
  if (sample.empty())
    GTEST_SKIP() << "no sample of 10^6 elements: " << row.no_slices << row.no_threads;
  const ScalarType dtype = row.own_type();
  SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
  const Operands o = operands(sample, dtype);
  const std::vector<Tensor> in = moved(o.tensors, gpu);
  cuda::DeviceState& state = cuda::device_state(0, "test");
  state.forget_launches();
  const Tensor y = row.call(in);
  const cuda::Launches launches = state.launches();
  if (launches.count == 0) EXPECT_TRUE(y.may_overlap(in[0])) << "who computed it?";
  else if (row.few_threads.empty()) EXPECT_GE(launches.most_threads, 1024u);
  else EXPECT_LT(launches.most_threads, 1024u) << "needs no reason: " << row.few_threads;
  const std::vector<Tensor> wide = widened(o.tensors);
  expect_sum_close(y.to(host), row.call(wide),
                   row.sums_products ? row.call(absolute(wide)) : Tensor(), row.slack);
  if (!row.differentiable || !is_floating(dtype)) return;
  state.forget_launches();
  expect_gradients(row, in, wide);
  if (row.few_threads.empty()) { EXPECT_GE(state.launches().most_threads, 1024u); }
}

}  // namespace op_table
}  // namespace ramet
