// Two ranks of one process add up a tensor.
#include <ramet.h>

#include <cstdio>
#include <string>
#include <thread>

#include "ramet/parallel/distributed/group/process_group.h"

int main() {
  float sums[2] = {};
  const auto rank = [&sums](int r) {
    auto group = ramet::distributed::init_process_group("inproc://sdk?world_size=2&rank=" +
                                                        std::to_string(r));
    ramet::Tensor t = ramet::full({3}, float(r + 1));
    group->all_reduce(t).wait();
    sums[r] = t.sum().item<float>();
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  std::printf("%g %g\n", double(sums[0]), double(sums[1]));
  return sums[0] == 9 && sums[1] == 9 ? 0 : 1;
}
