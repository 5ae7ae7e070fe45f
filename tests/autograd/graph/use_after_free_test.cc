// Planted errors with memory of the library's own making, which ASan has to report: a free list
// that kept the block would hide them.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "runtime/memory/pool.h"

namespace ramet {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAsan = true;
#else
constexpr bool kAsan = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool kTsan = true;
#else
constexpr bool kTsan = false;
#endif
#define RAMET_NEEDS_ASAN() \
  if (!kAsan) GTEST_SKIP() << "what is planted here is reported by the ASan build only"

volatile float g_sink;
volatile uint64_t g_count;

TEST(UseAfterFree, PoolsPassThroughUnderSanitizersOnly) {
  EXPECT_EQ(pool::kPassThrough, kAsan || kTsan);
}

TEST(UseAfterFree, Node) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        const Tensor x = ones({3});
        x.requires_grad_();
        Tensor y = x * x;
        autograd::Node* node = y.grad_fn().get();
        y = Tensor();
        g_count = node->counter;
      },
      "heap-use-after-free");
}

TEST(UseAfterFree, NodeOfAFreedGraph) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        const Tensor x = ones({3});
        x.requires_grad_();
        autograd::Node* inner;
        {
          const Tensor y = (x * x).tanh();
          inner = y.grad_fn()->next_edge(0).function.get();
        }
        g_count = inner->counter;
      },
      "heap-use-after-free");
}

TEST(UseAfterFree, SmallData) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        Tensor t = ones({4});
        const float* p = t.data_ptr<float>();
        t = Tensor();
        g_sink = p[2];
      },
      "heap-use-after-free");
}

TEST(UseAfterFree, LargeData) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        Tensor t = ones({2000000});
        const float* p = t.data_ptr<float>();
        t = Tensor();
        g_sink = p[1999999];
      },
      "heap-use-after-free");
}

// The object is gone, the data that lies in the same block is not: a view still shows them.
TEST(UseAfterFree, SmallTensorWhoseDataLive) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        Tensor t = ones({4});
        const Tensor view = t.detach();
        const TensorImpl* gone = t.impl();
        t = Tensor();
        g_count = static_cast<uint64_t>(gone->numel);
      },
      "use-after-poison");
}

TEST(UseAfterFree, BeyondTheEnd) {
  RAMET_NEEDS_ASAN();
  EXPECT_DEATH(
      {
        const Tensor t = ones({5});
        g_sink = t.data_ptr<float>()[5];
      },
      "heap-buffer-overflow");
  EXPECT_DEATH(
      {
        const Tensor t = ones({3000});
        g_sink = t.data_ptr<float>()[3000];
      },
      "heap-buffer-overflow");
}

}  // namespace
}  // namespace ramet
