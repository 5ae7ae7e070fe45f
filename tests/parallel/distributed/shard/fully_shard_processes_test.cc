// fully_shard over Gloo, a process a rank. This process starts no thread, so that its children may.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "nn/optim/adam.h"
#include "tests/parallel/distributed/shard/shard_precision.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {
namespace {

// 0: the bits of DistributedDataParallel over the same processes.
int train(int rank, const std::string& url) {
  const auto group = init_process_group(url + std::to_string(rank));
  TextNet whole = text_net(), net = text_net(24, rank ? 99 : 7);
  DistributedDataParallel<TextNet> ddp(whole, group);
  shard_all(net, DeviceMesh(group));
  optim::AdamW a(whole->parameters(), optim::AdamWOptions(0.01)),
      b(net->parameters(), optim::AdamWOptions(0.01));
  for (int step = 0; step < 5; ++step) {
    const TextBatch batch = text_batch(rank, step);
    a.zero_grad();
    b.zero_grad();
    text_loss(ddp(batch.ids), batch).backward();
    text_loss(net(batch.ids), batch).backward();
    a.step();
    b.step();
  }
  int64_t mine = 0;
  for (const Tensor& p : net->parameters()) mine += p.numel();
  int64_t all = 0;
  int code = 0;
  const auto state = full_state_dict(*net);
  for (const auto& item : whole->named_parameters()) {
    all += item.value().numel();
    if (!state[item.key()].equal(item.value().detach())) code = 1;
  }
  if (mine > all * 11 / 20) code = 2;
  group->barrier().wait();
  return code;
}

// 0: the ranks have the same values, which are those by hand.
int train_in_16_bits(int rank, const std::string& url) {
  const auto group = init_process_group(url + std::to_string(rank));
  const FullyShardOptions options = with_policy(kBFloat16);
  TextNet whole = text_net(), net = text_net(24, rank ? 99 : 7);
  shard_with_policy(net, DeviceMesh(group), options);
  optim::AdamW a(whole->parameters(), optim::AdamWOptions(0.01)),
      b(net->parameters(), optim::AdamWOptions(0.01));
  for (int step = 0; step < 5; ++step) {
    const TextBatch batch = text_batch(rank, step);
    b.zero_grad();
    text_loss(net(batch.ids), batch).backward();
    const Tensors means = means_by_hand(whole, options.mp_policy, 2, step, false);
    for (size_t i = 0; i < means.size(); ++i) whole->parameters()[i].mutable_grad() = means[i];
    a.step();
    b.step();
  }
  int code = 0;
  const auto state = full_state_dict(*net);
  for (const auto& item : whole->named_parameters())
    if (!state[item.key()].equal(item.value().detach())) code = 1;
  group->barrier().wait();
  return code;
}

void expect_success_of_two(int (*train)(int rank, const std::string& url)) {
  const TempFolder folder;
  const std::string url = "file://" + folder.path("store") + "?world_size=2&rank=";
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int code = 90;
      try {
        code = train(rank, url);
      } catch (const std::exception& e) { dprintf(STDERR_FILENO, "rank %d: %s\n", rank, e.what()); }
      _exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0) {}
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}
TEST(FullyShardProcesses, TrainsAsDdpOverGloo) { expect_success_of_two(train); }
TEST(FullyShardProcesses, TrainsIn16BitsOverGloo) { expect_success_of_two(train_in_16_bits); }

}  // namespace
}  // namespace ramet::distributed
