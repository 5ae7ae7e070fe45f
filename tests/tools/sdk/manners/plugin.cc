// A plug-in that trains. Its host knows four functions of C and nothing of Ramet.
#include <ramet.h>

#include <stdexcept>

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A loss after some steps; more threads than one work at it.
EXPORTED double plugin_train(int seed) {
  ramet::manual_seed(static_cast<uint64_t>(seed));
  ramet::nn::Sequential net(ramet::nn::Linear(256, 128), ramet::nn::ReLU(),
                            ramet::nn::Linear(128, 1));
  ramet::optim::Adam adam(net->parameters(), ramet::optim::AdamOptions(1e-3));
  const ramet::Tensor x = ramet::randn({512, 256});
  ramet::Tensor loss;
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    loss = net->forward(x).pow(2).mean();
    loss.backward();
    adam.step();
  }
  return loss.item<double>();
}

// State of the library: two copies of it have one each.
EXPORTED void plugin_set(int threads, int wide) {
  ramet::set_num_threads(threads);
  ramet::set_default_dtype(wide ? ramet::kDouble : ramet::kFloat);
}
EXPORTED int plugin_get() {
  return ramet::get_num_threads() * 100 + static_cast<int>(ramet::ones({1}).element_size());
}

// 0: caught here with its own type; otherwise it goes on to the host.
EXPORTED int plugin_fail(int leave) {
  try {
    ramet::ones({2, 3}).mm(ramet::ones({2, 3}));
  } catch (const ramet::Error&) {
    if (leave) throw;
    return 0;
  }
  return 1;
}
