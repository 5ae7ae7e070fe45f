// Ranks find each other without tools/launch and env://. Threads of one process use an inproc://
// address; other ranks use a scheme of the program. Also: what a group's backend can do.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "parallel/distributed/group/caps.h"
#include "ramet.h"

using namespace ramet;
using namespace ramet::distributed;

namespace {

void run(const std::string& url) {
  auto group = init_process_group(url);
  Tensor t = full({4}, group->rank() + 1.0);
  group->all_reduce(t).wait();
  if (group->rank() == 0) std::printf("%s: sum %g\n", url.c_str(), t[0].item<double>());
  group->barrier().wait();
}

template <class Body> void on_threads(int n, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& t : threads) t.join();
}

}  // namespace

int main() {
  // Three threads; the name separates two runs of one process.
  on_threads(3, [](int i) { run("inproc://trainers?world_size=3&rank=" + std::to_string(i)); });

  // Ranks in the order in which they come. A handler of one's own would ask a scheduler.
  std::atomic<int> next{0};
  register_rendezvous_handler("first-come", [&](const std::string&, RendezvousOptions options) {
    options.rank = next++;
    return rendezvous("inproc://2", options);
  });
  on_threads(2, [](int) { run("first-come://"); });

  // The program asks what a backend can do before it tries.
  for (const char* backend : {"gloo", "nccl"}) {
    const BackendCaps& caps = backend_caps(backend);
    const std::string why_not = caps.why_not();
    std::printf("%s: %s; the mean of int64: %s, of float32: %s; memory of the host: %s\n", backend,
                why_not.empty() ? "can be used" : why_not.c_str(),
                caps.supports("all_reduce", kLong, ReduceOp::average) ? "yes" : "no",
                caps.supports("all_reduce", kFloat, ReduceOp::average) ? "yes" : "no",
                caps.takes(kCPU) ? "yes" : "no");
  }
  return 0;
}
