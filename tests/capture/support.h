// What the tests of captures share.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "kernels/copy/fill.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/module.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/optim/sgd.h"
#include "runtime/devices/generator.h"
#include "runtime/devices/gpu.h"
#include "tests/error_text.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/share.h"

namespace ramet {
namespace capture_tests {

inline const Device kHost(kCPU, 0);
/// Fewer where each costs many times as much. Ten still contain a short last batch, an eager step
/// and replays.
inline const int kSteps = testing::one_repeat_in() > 1 ? 10 : 24;

/// Why no GPU can compute here; empty where one can.
inline std::string why_no_gpu() {
  if (!kernels::arange.cuda) return "no kernels for one are linked (--define=ramet_gpu_kernels=0)";
  if (!gpu::library()) return "not linked";
  return gpu::library()->device_count() > 0 ? "" : gpu::library()->why_none();
}

#if RAMET_GPU_EMULATED
/// Emulated GPUs that still work when the program ends would use objects that are being destroyed.
/// (Real ones do not, and tests of other folders in the same program may have kept tensors there.)
class StopsGpus : public ::testing::Environment {
 public:
  void TearDown() override { const ramet::testing::Gpus last; }
};
inline const auto* const kStopsGpus = ::testing::AddGlobalTestEnvironment(new StopsGpus);
#endif

/// The bytes of a tensor's values, row-major.
inline std::string bits(const Tensor& t) {
  if (!t.defined()) return "undefined";
  const Tensor host = t.detach().to(kHost).contiguous();
  return std::string(static_cast<const char*>(host.data_ptr()), host.nbytes());
}

/// A small picture net: convolution, batch norm, pool, dropout, two layers.
struct NetImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Dropout drop{nullptr};
  nn::Linear first{nullptr}, second{nullptr};
  NetImpl() {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 4, 3)));
    norm = register_module("norm", nn::BatchNorm2d(4));
    drop = register_module("drop", nn::Dropout(0.3));
    first = register_module("first", nn::Linear(4 * 5 * 5, 16));
    second = register_module("second", nn::Linear(16, 5));
  }
  Tensor forward(const Tensor& x) {
    Tensor h = max_pool2d(relu(norm->forward(conv->forward(x))), 2);
    h = drop->forward(h.flatten(1));
    return second->forward(relu(first->forward(h)));
  }
};
RAMET_MODULE(Net);

}  // namespace capture_tests
}  // namespace ramet
