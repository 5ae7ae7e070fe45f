// The smallest program: one derivative. Prints when it had it (nanoseconds of the monotonic clock)
// and the most memory that it had resident (KiB).
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include "ramet.h"

int main() {
  const ramet::Tensor x = ramet::ones({2, 2}).requires_grad_();
  (x * x).sum().backward();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  std::ifstream status("/proc/self/status");
  std::string word, resident;
  while (status >> word && word != "VmHWM:") {}
  status >> resident;
  std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() << ' ' << resident
            << '\n';
  return x.grad().sum().item<float>() == 8 ? 0 : 1;
}
