// GPUs without cuBLASLt and NCCL: everything still runs, and a log handler is warned once. This is
// a program of its own because a process searches for libraries only once.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/base/logging.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/nccl.h"
#include "tests/error_text.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

using namespace parallel;

TEST(NoLibraries, KernelsTakeTheirPlace) {
  emulated::Settings settings = gpu_settings(2);
  settings.cublaslt_version = settings.nccl_version = 0;
  const Gpus two(settings);
  const auto train = [](const std::vector<Device>& devices) {
    nn::Linear net(96, 64);
    set_parameters(*net, 5);
    net->to(devices[0]);
    nn::parallel::DataParallelOptions options(devices);
    options.order = ReduceOrder::any();
    nn::parallel::DataParallel<nn::Linear> dp(net, options);
    dp(varied({32, 96}, 6)).square().mean().backward();
    return all_gradients(*net);
  };
  std::vector<std::string> said;
  const Values silent = train(gpus(2));  // no log handler yet
  set_log_handler([&said](LogLevel level, const std::string& text) {
    if (level == LogLevel::Warning) said.push_back(text);
  });
  const Values first = train(gpus(2));
  const size_t told = said.size();
  const Values second = train(gpus(2));
  set_log_handler(nullptr);
  const Values host = train({Device(kCPU, 0), Device(kCPU, 1)});
  EXPECT_LE(difference(first, host), 1e-6);
  EXPECT_EQ(first, silent);
  EXPECT_EQ(first, second);
  EXPECT_EQ(cuda::nccl_sums(), 0u);
  EXPECT_EQ(cuda::blas_searches(), 0u);
  const auto saying = [&said](const std::string& part) {
    return std::ranges::count_if(said, [&](const std::string& s) { return contains(s, part); });
  };
  EXPECT_EQ(saying("cuBLASLt cannot be used, matrix products on GPUs run as kernels"), 1);
  EXPECT_EQ(saying("NCCL cannot be used, sums run as kernels"), 1);
  EXPECT_EQ(said.size(), told);
}

}  // namespace
}  // namespace ramet::testing
