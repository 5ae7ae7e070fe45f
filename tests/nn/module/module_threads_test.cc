// One module, several threads. Run under TSan by `./tools/test --tsan`.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "runtime/devices/generator.h"

namespace ramet {
namespace {

// A server's use: forwards that record nothing, of one module in eval mode, none of them locked.
TEST(ModuleThreads, NoGradForwardsOfOneModule) {
  manual_seed(2);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 4, 3)), nn::BatchNorm2d(4), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 3 * 3, 5), nn::Dropout(0.5));
  net->eval();
  std::vector<Tensor> inputs, expected;
  {
    const NoGradGuard off;
    for (int i = 0; i < 4; ++i) {
      inputs.push_back(randn({3, 1, 8, 8}));
      expected.push_back(net->forward(inputs.back()));
    }
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < inputs.size(); ++i)
    threads.emplace_back([&, i] {
      const NoGradGuard off;
      for (int n = 0; n < 10; ++n) {
        const Tensor y = net->forward(inputs[i]);
        EXPECT_TRUE(y.equal(expected[i]));
        EXPECT_FALSE(y.requires_grad());
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace ramet
