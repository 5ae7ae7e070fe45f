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
#include "runtime/memory/allocator.h"
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

using Use = std::function<void(const Tensor&)>;
/// f cannot be captured, for an operation of this name, and keeps no memory on x's device.
inline void expect_refused(const std::string& op, const Tensor& x, const Use& f) {
  const int64_t before = memory_stats(x.device()).current;
  {
    Captured step([&](const Tensor& in) { f(in); });
    EXPECT_ERROR_TEXT(step(x), "[" + op + "] not capturable");
    EXPECT_EQ(step.size(), 0u);
  }
  EXPECT_EQ(memory_stats(x.device()).current, before) << op;
}

}  // namespace capture_tests
}  // namespace ramet
