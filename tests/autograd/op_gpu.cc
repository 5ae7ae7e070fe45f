#include <gtest/gtest.h>

#include <string>

#include "autograd/ops/copy.h"
#include "runtime/gpu.h"
#include "tests/autograd/op_checks.h"

namespace ramet {
namespace op_table {
namespace {

std::vector<Tensor> moved(V tensors, Device to) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.to(to));
  return out;
}

// Runs f; false, and the reason in `missing`, where a kernel has no GPU side yet.
template <class F> bool has_kernels(const F& f, std::string& missing) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    missing = e.what();
    if (missing.find("linked without CUDA kernels") == std::string::npos) throw;
    return false;
  }
}

}  // namespace

void check_gpu(const Row& row) {
  gpu::Library* library = gpu::library();
  if (!library || library->device_count() == 0)
    GTEST_SKIP() << "no GPU: " << (library ? library->why_none() : "not linked");
  const Device gpu(kCUDA, 0), host(kCPU, 0);
  std::string missing;
  for (ScalarType dtype : compared_types(row)) {
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const Operands o = operands(sample, dtype);
      const std::vector<Tensor> in = moved(o.tensors, gpu);
      Tensor y, again;
      if (!has_kernels([&] { y = row.call(in), again = row.call(in); }, missing))
        GTEST_SKIP() << missing;
      EXPECT_EQ(y.device(), gpu);
      expect_close(y.to(host), expected(row, o.plain), row.slack);
      EXPECT_EQ(bits(y.to(host)), bits(again.to(host)));
      if (!row.differentiable || !is_floating(dtype)) continue;
      std::vector<Tensor> got;
      if (!has_kernels([&] { got = gradients(row.call, in); }, missing)) GTEST_SKIP() << missing;
      const std::vector<Tensor> want = gradients(row.call, o.tensors);
      for (size_t k = 0; k < want.size(); ++k) {
        ASSERT_EQ(got[k].defined(), want[k].defined());
        if (want[k].defined()) expect_close(got[k].to(host), plain_of(want[k]), 8 * row.slack);
      }
    }
  }
}

}  // namespace op_table
}  // namespace ramet
