// A step of four backwards, each of a part of the rank's batch. It meets the other ranks once
// instead of four times: by accumulate(), and the same by hand. To start two processes on this
// host:
//
//   tools/launch --nproc 2 -- bazel-bin/tools/examples/processes_accumulate
//
// Started alone, it is the only process: nothing travels then.
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

using namespace ramet;

namespace {

constexpr int64_t kParts = 4;

struct Step {
  Tensor gradients;
  uint64_t operations, bytes;  // that this rank ran with the others, and sent to them
};

double apart(const Step& a, const Step& b) {
  return (a.gradients - b.gradients).abs().max().item<double>();
}

}  // namespace

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  nn::Sequential model(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 2));
  distributed::DistributedDataParallel<nn::Sequential> ddp(model, group);
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({128, 64}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  const auto loss_of = [&](int64_t part) {
    const int64_t rows = x.size(0) / kParts, at = part * rows;
    return cross_entropy_loss(ddp(x.slice(0, at, at + rows)), y.slice(0, at, at + rows));
  };

  // A group numbers its operations, and remembers the last ones.
  const auto operations = [&] {
    const auto records = group->recent_operations();
    return records.empty() ? 0 : records.back().number;
  };
  const auto step = [&](const char* how, const auto& backwards) {
    model->zero_grad();
    group->reset_wire_bytes();
    const uint64_t before = operations();
    backwards();
    std::vector<Tensor> gradients;
    for (const Tensor& p : model->parameters()) gradients.push_back(p.grad());
    const Step s{nn::utils::parameters_to_vector(gradients).clone(), operations() - before,
                 group->wire_bytes() + group->shared_bytes()};
    if (group->rank() == 0)
      std::printf("%-17s %llu operations, %6llu bytes sent\n", how,
                  static_cast<unsigned long long>(s.operations),
                  static_cast<unsigned long long>(s.bytes));
    return s;
  };

  // The first step of a run also agrees on the order of the buckets.
  loss_of(0).backward();

  // Every backward waits for the other ranks. What has been reduced already is not reduced again.
  const Step each = step("each backward:", [&] {
    for (int64_t part = 0; part < kParts; ++part) loss_of(part).div(kParts).backward();
  });

  // Gradients stay on the rank until the last backward reduces all of what has come together.
  const Step once = step("accumulate():", [&] {
    auto whole = ddp.accumulate(kParts);  // divides by 4, too
    for (int64_t part = 0; part < kParts; ++part)
      if (whole.backward(loss_of(part))) return;  // here a program would let its optimizer step
  });

  // The same for what runs in one process, in replicas, or under replicate() and fully_shard().
  const Step anywhere = step("anywhere:", [&] {
    optim::GradientAccumulation whole(kParts, ddp);
    for (int64_t part = 0; part < kParts; ++part)
      if (whole.backward(loss_of(part))) return;
  });

  // By hand, where the parts do not count alike, or their number is not known before.
  const Step guarded = step("no_sync():", [&] {
    {
      const auto off = ddp.no_sync();
      for (int64_t part = 0; part + 1 < kParts; ++part) loss_of(part).div(kParts).backward();
    }
    loss_of(kParts - 1).div(kParts).backward();
  });
  const Step switched = step("switched off, on:", [&] {
    for (int64_t part = 0; part < kParts; ++part) {
      ddp.set_requires_gradient_sync(part + 1 == kParts);
      loss_of(part).div(kParts).backward();
    }
  });

  // Four ways to do the same, so the same bits. Gradients that are reduced part by part are rounded
  // differently.
  const bool same =
      apart(once, anywhere) == 0 && apart(once, guarded) == 0 && apart(once, switched) == 0;
  const bool close = apart(once, each) < 1e-6;
  const bool cheap = each.bytes == kParts * once.bytes &&
                     each.operations == kParts * once.operations && anywhere.bytes == once.bytes &&
                     anywhere.operations == once.operations;
  std::printf("process %d of %d: gradients %s, %.1e from those of each backward\n", group->rank(),
              group->size(), same ? "the same" : "different", apart(once, each));
  group->barrier().wait();  // no rank leaves while others still need it
  return same && close && cheap ? 0 : 1;
}
