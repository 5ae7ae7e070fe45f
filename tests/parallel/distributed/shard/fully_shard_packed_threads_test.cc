// Recurrent layers under fully_shard that take packed sequences: a method call is their forward.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/optim/sgd.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

using nn::utils::rnn::PackedSequence;

// Of a rank: three sequences of some lengths.
PackedSequence packed_batch(int rank, int step) {
  const Generator g(Device(kCPU, 0), static_cast<uint64_t>(100 * step + rank));
  const Tensor x = randn({5, 3, 4}, g, TensorOptions(kFloat).device(Device(kCPU, 0)));
  return nn::utils::rnn::pack_padded_sequence(
      x, tensor({int64_t{2}, int64_t{5}, int64_t{1 + rank}}), false, /*enforce_sorted=*/false);
}
Tensor last_of(const Tensor& state) { return state; }
Tensor last_of(const std::tuple<Tensor, Tensor>& states) {
  return std::get<0>(states).sum() + std::get<1>(states).sum();
}
template <class Net> Tensor loss_of(Net net, const PackedSequence& x) {
  const auto [rows, last] = net->forward_with_packed_input(x);
  return rows.data().square().sum() + last_of(last).sum();
}

// The sharded layer, and one that every rank has whole. The test averages its gradients itself.
template <class Net, class Options> void trains_as_the_whole(const Options& options) {
  with_groups_of(2, [&](const Group& g) {
    for (const bool reshard : {true, false}) {
      Net whole(options), net(options);
      uint64_t n = 7;
      for (size_t i = 0; i < whole->parameters().size(); ++i) {
        const NoGradGuard off;
        const Generator draws(Device(kCPU, 0), n++);
        const Tensor p = whole->parameters()[i];
        p.copy_(randn(p.sizes(), draws, TensorOptions(kFloat).device(Device(kCPU, 0))).mul_(.3));
        net->parameters()[i].copy_(p);
      }
      FullyShardOptions sharding;
      sharding.reshard_after_forward = reshard;
      fully_shard(net, DeviceMesh(g), sharding);
      optim::SGD a(whole->parameters(), optim::SGDOptions(.05)),
          b(net->parameters(), optim::SGDOptions(.05));
      for (int step = 0; step < 3; ++step) {
        const PackedSequence x = packed_batch(g->rank(), step);
        a.zero_grad(), b.zero_grad();
        const Tensor want = loss_of(whole, x), got = loss_of(net, x);
        ASSERT_TRUE(same_bits(got.detach(), want.detach())) << "step " << step;
        want.backward(), got.backward();
        for (const Tensor& p : whole->parameters()) {
          g->all_reduce(p.mutable_grad()).wait();
          p.mutable_grad().div_(2);
        }
        a.step(), b.step();
        EXPECT_EQ(fully_shard_handle(net).state(), ShardState::sharded);
      }
      const auto state = full_state_dict(*net);
      for (const auto& item : whole->named_parameters())
        EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
    }
  });
}

TEST(FullyShardPacked, LstmTrainsAsTheWhole) {
  trains_as_the_whole<nn::LSTM>(nn::LSTMOptions(4, 3).num_layers(2).bidirectional(true));
  trains_as_the_whole<nn::LSTM>(nn::LSTMOptions(4, 3).proj_size(2));
}
TEST(FullyShardPacked, GruTrainsAsTheWhole) {
  trains_as_the_whole<nn::GRU>(nn::GRUOptions(4, 3).num_layers(2));
}
TEST(FullyShardPacked, RnnTrainsAsTheWhole) {
  trains_as_the_whole<nn::RNN>(nn::RNNOptions(4, 3).nonlinearity(kReLU));
}

}  // namespace
}  // namespace ramet::distributed
