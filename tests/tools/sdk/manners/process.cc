// What Ramet does to the process that it is in; the first argument says what is checked.
#include <ramet.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <locale>
#include <string>
#include <vector>

#include "expect.h"

using ramet::Tensor;

namespace {

// Large enough to be shared: forward, backward and step.
float step(ramet::Device device = ramet::kCPU) {
  ramet::nn::Linear net(256, 256);
  {
    ramet::NoGradGuard no_grad;
    net->weight.copy_(ramet::linspace(-1, 1, 256 * 256).view({256, 256}).sin());
    net->bias.zero_();
  }
  net->to(device);
  ramet::optim::SGD sgd(net->parameters(), ramet::optim::SGDOptions(0.1));
  const Tensor x = ramet::arange(512 * 256, ramet::kFloat).cos().view({512, 256}).to(device);
  ramet::relu(net(x)).pow(2).mean().backward();
  sgd.step();
  return ramet::relu(net(x)).sum().item<float>();
}

struct Settings {
  std::string c_locale = std::setlocale(LC_ALL, nullptr), locale = std::locale().name();
  std::vector<void (*)(int)> handlers;
  sigset_t blocked = {};  // (sigemptyset leaves the words that no signal has)
  Settings() {
    for (int s = 1; s < NSIG; ++s) {
      struct sigaction now;
      if (sigaction(s, nullptr, &now) == 0) handlers.push_back(now.sa_handler);
    }
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  }
  bool operator==(const Settings& o) const {
    return c_locale == o.c_locale && locale == o.locale && handlers == o.handlers &&
           std::memcmp(&blocked, &o.blocked, sizeof blocked) == 0;
  }
};

// No thread before the first operation that is shared; as many as were asked for after it.
void count_threads(int expected) {
  const Settings before;
  EXPECT(threads() == 1);
  Tensor small = ramet::ones({8}, ramet::requires_grad());
  (small * 2).sum().backward();
  EXPECT(threads() == 1);
  EXPECT(ramet::get_num_threads() == expected);
  step();
  // On very many cores there are fewer tasks.
  EXPECT(expected > 8 ? threads() > 8 && threads() <= expected : threads() == expected);
  EXPECT(before == Settings());
}

// A child of fork() trains, and ends as programs end; so does its child.
void fork_and_go_on() {
  ramet::set_num_threads(3);
  const ramet::Device second(ramet::kCPU, 1);
  const float on_first = step(), on_second = step(second);
  const Tensor x = ramet::arange(1000, ramet::dtype(ramet::kFloat).device(second)) + 1;
  for (int generation = 0; generation < 2; ++generation) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child != 0) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      break;
    }
    alarm(60);
    EXPECT(threads() == 1);
    EXPECT(step() == on_first);
    EXPECT(threads() == 3);
    EXPECT(step(second) == on_second);
    EXPECT(x.sum().item<float>() == 500500.f);
    std::vector<ramet::Device> both{ramet::Device(ramet::kCPU, 0), second};
    ramet::nn::Linear net(4, 2);
    const Tensor y = ramet::nn::parallel::data_parallel(net, ramet::ones({6, 4}), both);
    y.sum().backward();
    EXPECT(ramet::allclose(net->weight.grad(), ramet::full({2, 4}, 6.f)));
  }
  EXPECT(step() == on_first);
}

// Where denormals are zero, they are equal to it.
bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data_ptr<float>(), b.data_ptr<float>(), size_t(a.numel()) * 4) == 0;
}

// Results do not depend on the thread that computes them. They have the same bits for one thread
// and for several threads that had other modes when they were made. A device with a thread of its
// own gives the same bits, too.
void modes_travel() {
  ramet::set_num_threads(4);
  step();
  step(ramet::Device(ramet::kCPU, 1));
  const auto by_all = [](const std::function<Tensor(ramet::Device)>& f, const char* what) {
    ramet::set_num_threads(1);
    const Tensor alone = f(ramet::kCPU);
    ramet::set_num_threads(4);
    for (int round = 0; round < 20; ++round)
      if (!same_bits(f(ramet::kCPU), alone)) std::printf("FAILED: %s\n", what), std::exit(1);
    const Tensor there = f(ramet::Device(ramet::kCPU, 1)).to(ramet::kCPU);
    if (!same_bits(there, alone)) std::printf("FAILED: %s on cpu:1\n", what), std::exit(1);
    return alone;
  };
  const float tiny = std::numeric_limits<float>::denorm_min();
  const ramet::Device second(ramet::kCPU, 1);
  // Made before modes change: they would change these too.
  const Tensor here = ramet::full({1 << 20}, 1024 * tiny), there = here.to(second);
  const Tensor numbers = ramet::arange(1, 1 << 20, ramet::kFloat), others = numbers.to(second);
  const auto halves = [&](ramet::Device d) { return (d == second ? there : here) * 0.5; };
  const auto thirds = [&](ramet::Device d) { return (d == second ? others : numbers) / 3; };
  // The same in the backward; the workers run its pass over two devices.
  const auto gradient = [&](ramet::Device d) {
    Tensor x = ramet::ones({1 << 20}, ramet::requires_grad());
    (x.to(d) * 0.5).backward(d == second ? there : here);
    return x.grad();
  };
  const Tensor kept = by_all(halves, "denormals"), near = by_all(thirds, "thirds");
  EXPECT(kept[7].item<float>() == 512 * tiny);
  EXPECT(by_all(gradient, "gradient")[7].item<float>() == 512 * tiny);
#ifdef __x86_64__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // denormals are zero, as operands and results
  const Tensor lost = by_all(halves, "denormals as zero");
  const Tensor lost_gradient = by_all(gradient, "gradient, denormals as zero");
  _mm_setcsr(_mm_getcsr() & ~0x8040u);
  EXPECT(lost.count_nonzero().item<int64_t>() == 0);
  EXPECT(lost_gradient.count_nonzero().item<int64_t>() == 0);
#endif
  std::fesetround(FE_UPWARD);
  const Tensor up = by_all(thirds, "rounded up");
  std::fesetround(FE_TONEAREST);
  EXPECT((up < near).sum().item<int64_t>() == 0 && (up > near).sum().item<int64_t>() > 100000);
  EXPECT(ramet::equal(by_all(thirds, "as before"), near));
}

// Threads of OpenMP's each train a network; the bits are those of one thread alone.
void beside_openmp() {
  ramet::set_num_threads(2);
  const float alone = step();
  int equal = 0;
#pragma omp parallel for num_threads(4) reduction(+ : equal)
  for (int i = 0; i < 8; ++i) equal += step() == alone;
  EXPECT(equal == 8);
  EXPECT(step() == alone);
}

}  // namespace

int main(int argc, char** argv) {
  ramet::manual_seed(1);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "threads" && argc == 3) count_threads(std::atoi(argv[2]));
  else if (what == "fork") fork_and_go_on();
  else if (what == "modes") modes_travel();
  else if (what == "openmp") beside_openmp();
  else return 2;
  return 0;
}
