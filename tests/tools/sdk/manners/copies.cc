// A shared library that a program is linked with, both with Ramet inside; LIBRARY: the library.
#include <ramet.h>

#include "expect.h"

namespace {
/// What a network that both make computes, without a gradient in between.
inline float computed() {
  ramet::manual_seed(7);
  ramet::nn::Sequential net(ramet::nn::Linear(4, 3), ramet::nn::Tanh());
  const ramet::Tensor x = ramet::randn({5, 4});
  EXPECT(net(x).requires_grad());
  const ramet::NoGradGuard off;
  const ramet::Tensor y = net(x);
  EXPECT(!y.requires_grad());
  return y.sum().item<float>();
}
}  // namespace

__attribute__((visibility("default"))) float of_the_library();

#ifdef LIBRARY
float of_the_library() { return computed(); }
#else
int main() {
  try {
    const float mine = computed();
    EXPECT(of_the_library() == mine);
  } catch (const ramet::Error& e) {
    std::printf("%s\n", e.what());
    return 2;
  }
  return 0;
}
#endif
