// Functions of nn::functional on a GPU: values and gradients as on the CPU, and all of it queued
// there.
#include "autograd/autograd.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "nn/functional/functional.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

namespace F = nn::functional;

struct Row {
  const char* name;
  Tensor (*f)(const Tensor&);  // of [6, 4, 10]
};

const Row kRows[] = {
    {"relu6", [](const Tensor& x) { return F::relu6(x); }},
    {"elu", [](const Tensor& x) { return F::elu(x); }},
    {"selu, in place", [](const Tensor& x) { return F::selu(x.mul(1), true); }},
    {"celu", [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().alpha(2)); }},
    {"glu", [](const Tensor& x) { return F::glu(x); }},
    {"silu", [](const Tensor& x) { return F::silu(x); }},
    {"mish", [](const Tensor& x) { return F::mish(x); }},
    {"logsigmoid", [](const Tensor& x) { return F::logsigmoid(x); }},
    {"softsign", [](const Tensor& x) { return F::softsign(x); }},
    {"tanhshrink", [](const Tensor& x) { return F::tanhshrink(x); }},
    {"hardshrink", [](const Tensor& x) { return F::hardshrink(x); }},
    {"softshrink", [](const Tensor& x) { return F::softshrink(x); }},
    {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }},
    {"threshold", [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0, 2)); }},
    {"prelu", [](const Tensor& x) { return F::prelu(x, x.select(0, 0).select(1, 3).detach()); }},
    {"rrelu", [](const Tensor& x) { return F::rrelu(x); }},
    {"pad, constant",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({1, 2, -1, 3}));
     }},
    {"pad, reflect",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, 3, 1}).mode(kReflect));
     }},
    {"pad, replicate",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, -1, 3}).mode(kReplicate));
     }},
    {"pad, circular",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, 4, 1}).mode(kCircular));
     }},
    {"softmin", [](const Tensor& x) { return F::softmin(x, 1); }},
};

TEST(FunctionalsOnGpu, AsOnTheCpu) {
  for (const Row& row : kRows)
    for (const ScalarType dtype : {kFloat, kDouble}) {
      SCOPED_TRACE(row.name);
      const double tolerance = dtype == kFloat ? 2e-5 : 1e-13;
      std::vector<double> value, gradient;
      for (const Device device : {kHost, kGpu}) {
        const Tensor x = drawn({6, 4, 10}, dtype, 3).to(device).requires_grad_();
        const Tensor y = row.f(x.mul(8));
        EXPECT_EQ(y.device(), device);
        y.mul(y.detach()).sum().backward();
        if (device == kHost) {
          value = numbers(y), gradient = numbers(x.grad());
        } else {
          expect_near(y, value, tolerance, "value");
          expect_near(x.grad(), gradient, tolerance, "gradient");
        }
      }
    }
}

}  // namespace
}  // namespace ramet::kernels
