// A multilayer perceptron that learns: what the size of a program is measured with.
#include <ramet.h>

#include <cstdio>
#include <cstring>

static_assert(RAMET_VERSION_NUMBER >= 100, "the macros are there");

int main() {
  if (std::strcmp(ramet::version(), RAMET_VERSION) != 0) return 2;
  ramet::manual_seed(1);
  ramet::nn::Sequential net(ramet::nn::Linear(2, 16), ramet::nn::Tanh(), ramet::nn::Linear(16, 1));
  ramet::optim::Adam adam(net->parameters(), ramet::optim::AdamOptions(0.05));
  const ramet::Tensor x = ramet::tensor({{0.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}});
  const ramet::Tensor y = ramet::tensor({{0.f}, {1.f}, {1.f}, {0.f}});
  float error = 1;
  for (int step = 0; step < 300; ++step) {
    adam.zero_grad();
    ramet::Tensor loss = ramet::mse_loss(net->forward(x), y);
    loss.backward();
    adam.step();
    error = loss.item<float>();
  }
  std::printf("loss %g with Ramet %s\n", double(error), ramet::version());
  return error < 0.01f ? 0 : 1;
}
