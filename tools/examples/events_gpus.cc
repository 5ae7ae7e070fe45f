// Events, pinned memory and copies without waits. Batches travel to a GPU and results travel back
// while both the host and the GPU go on. Without GPUs it runs on emulated ones.
#include <cstdlib>
#include <iostream>
#include <vector>

#include "ramet.h"

namespace torch = ramet;

int main() {
  setenv("RAMET_EMULATED_DEVICES", "2", /*overwrite=*/0);  // real ones do not read it
  if (!torch::cuda::is_available()) {
    std::cout << "no GPU\n";
    return 0;
  }
  const torch::Device host(torch::kCPU, 0), gpu(torch::kCUDA, 0), second(torch::kCUDA, 1);
  const bool two = torch::cuda::device_count() > 1;
  torch::manual_seed(1);
  const torch::Tensor weight = torch::randn({32, 8}).to(gpu);

  // Two batches in pinned memory, filled in turn. The next one is on its way while the GPU works on
  // this one. A copy waits only for operations that use its memory.
  torch::Tensor batch[2] = {
      torch::empty({64, 32}, torch::TensorOptions().pinned_memory(true)),
      torch::empty({64, 32}, torch::TensorOptions().pinned_memory(true)),
  };
  std::vector<torch::Tensor> results;
  std::vector<torch::Event> done(6);
  torch::Event start(/*enable_timing=*/true), end(/*enable_timing=*/true);
  start.record(gpu);
  torch::Tensor expected = torch::zeros({8});
  for (int step = 0; step < 6; ++step) {
    torch::Tensor& x = batch[step % 2];
    x.fill_(step);  // waits until the copy of two steps ago has read it
    const torch::Tensor y = x.to(gpu, torch::kFloat, /*non_blocking=*/true).matmul(weight).sum(0);
    results.push_back(y.to(host, torch::kFloat, /*non_blocking=*/true));
    done[static_cast<size_t>(step)].record(gpu);  // after all of that
    expected += 64.f * static_cast<float>(step) * weight.to(host).sum(0);
  }
  end.record(gpu);
  std::cout << "the last step is " << (done[5].query() ? "" : "not ") << "done\n";
  done[5].synchronize();  // now it is, and its result is on the host
  end.synchronize();
  std::cout << "the GPU took " << start.elapsed_time(end) << " ms\n";
  std::cout << "in pinned memory: " << results[5].is_pinned() << '\n';
  torch::Tensor total = torch::zeros({8});
  for (const torch::Tensor& y : results) total += y;  // a read of the tensor waits by itself
  bool well = done[5].query() && total.allclose(expected, 1e-3, 1e-3);

  // Work that is queued on the other GPU from now on comes after this sum; the host goes on.
  if (two) {
    const torch::Tensor sum = weight.sum();
    torch::Event ready;
    ready.record(gpu);
    ready.block(second);
    const torch::Tensor there = sum.to(second) * 2;
    torch::cuda::synchronize(1);
    well = well && ready.query() && there.item<float>() == 2 * sum.item<float>();
  }
  std::cout << (well ? "all as expected\n" : "something else came out\n");
  return well ? 0 : 1;
}
