// Reductions between GPUs with a driver that first waits for all earlier work of a GPU. It does so
// before it gives memory, and before a kernel runs there for the first time. The group still stops
// waiting at the deadline for messages that never arrive.
#include <functional>
#include <utility>
#include <vector>

#include "runtime/devices/devices.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"

namespace ramet::testing {
namespace {

using distributed::CommTimeout;
using distributed::in_time;

using Two = std::vector<Tensor>;  // of one rank, equal

struct Kind {
  const char* name;
  int ranks;
  std::function<Work(const Group&, const Two&, CollectiveOptions)> start;
  int64_t n = 5;
  ScalarType dtype = kFloat;
};

Work all_reduce(const Group& g, const Two& t, CollectiveOptions o, ReduceOp op) {
  o.op = op;
  return g->all_reduce(t[0], o);
}

const Kind kKinds[] = {
    {"sum", 2,
     [](const Group& g, const Two& t, auto o) { return all_reduce(g, t, o, ReduceOp::sum); }},
    {"sum of chunks, by more than the kernel of few", 5,
     [](const Group& g, const Two& t, auto o) { return all_reduce(g, t, o, ReduceOp::sum); },
     40000},
    {"average", 2,
     [](const Group& g, const Two& t, auto o) { return all_reduce(g, t, o, ReduceOp::average); }, 5,
     kDouble},
    {"product", 2,
     [](const Group& g, const Two& t, auto o) { return all_reduce(g, t, o, ReduceOp::product); }, 5,
     kLong},
    {"largest", 2,
     [](const Group& g, const Two& t, auto o) { return all_reduce(g, t, o, ReduceOp::max); },
     1000000},
    {"members", 2,
     [](const Group& g, const Two& t, auto o) { return g->all_reduce_members(t, o); }},
    {"to one", 2, [](const Group& g, const Two& t, auto o) { return g->reduce(t[0], 1, o); },
     1000000},
    {"to each a part", 2,
     [](const Group& g, const Two& t, auto o) { return g->reduce_scatter(empty_like(t[0]), t, o); },
     1000000},
};

TEST(DriverWaits, NothingIsAskedOfTheCardInTheMiddle) {
  RAMET_EMULATED_ONLY("messages that stop half-way, and a driver that waits on demand");
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const Gpus gpus(rank_gpus(kind.ranks, emulated::StreamMode::Async, /*driver_waits=*/true));
    // The checker fills a million numbers slowly. The ranks' timeout is for the messages alone.
    std::vector<Two> tensors;
    for (int rank = 0; rank < kind.ranks; ++rank) {
      const Tensor t = full({kind.n}, 1, TensorOptions(kind.dtype).device(gpu(rank)));
      tensors.push_back({t, t.clone()});
    }
    ramet::devices::synchronize();
    const Held held;
    with_gpu_groups(kNcclThreads, kind.ranks, seconds(60), [&](const Group& g) {
      const Two& t = tensors[static_cast<size_t>(g->rank())];
      CollectiveOptions o("late");
      o.timeout = Milliseconds(1000);
      const auto begun = std::chrono::steady_clock::now();
      try {
        kind.start(g, t, o).wait();
        ADD_FAILURE() << kind.name << ": no error";
      } catch (const CommTimeout& e) {
        expect_part(e.what(), "the messages between the cards did not arrive");
      } catch (const CommError& e) {  // of the first one
        EXPECT_GT(kind.ranks, 2) << kind.name << ": " << e.what();
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begun, in_time(Milliseconds(5000)));
      for (const Tensor& kept : t)
        EXPECT_TRUE(same(kept, full({kind.n}, 1, TensorOptions(kind.dtype))));
    });
  }
}

}  // namespace
}  // namespace ramet::testing
