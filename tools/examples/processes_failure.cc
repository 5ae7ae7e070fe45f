// A rank that does not come, or that differs: every rank gets an error that names it, and the
// remaining ranks form a new group. The ranks are threads here; processes behave the same.
// processes_checkpoint.cc shows how a run goes on from a checkpoint after a rank was lost.
#include <cstdio>
#include <thread>
#include <vector>

#include "parallel/distributed/group/process_group.h"
#include "ramet.h"

using namespace ramet;
using namespace ramet::distributed;

int main() {
  GroupOptions options;
  options.timeout = std::chrono::seconds(30);
  auto groups = make_local_groups(3, options);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&groups, rank] {
      auto group = groups[static_cast<size_t>(rank)];
      if (rank == 1) return;  // it never joins

      Tensor t = full({4}, rank + 1.0);
      CollectiveOptions soon("the first sum");
      soon.timeout = std::chrono::seconds(1);
      try {
        group->all_reduce(t, soon).wait();
      } catch (const CommTimeout& e) {
        // "... all_reduce(operation 1, "the first sum", float32[4], sum, fixed): rank 1 did not
        // take part". t is as it was, and the program goes on.
        if (rank == 0) std::printf("%s\n", e.what());
        // The report also says how far each rank had come, for a run that hung. The group remembers
        // its last operations, and each rank that asks for the report sends its own.
        const std::string report = group->report();
        if (rank == 0) std::printf("%s", report.c_str());
      }
      auto rest = group->regroup({0, 2});
      rest->all_reduce(t).wait();
      if (rank == 0) std::printf("the sum of the others: %g\n", t[0].item<double>());
    });
  }
  for (std::thread& t : ranks) t.join();
  return 0;
}
