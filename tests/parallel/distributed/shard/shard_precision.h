// What a step with a MixedPrecisionPolicy has to give: float32 parameters, casts by hand, sums of
// all ranks' gradients written down once more.
#pragma once
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {

using Tensors = std::vector<Tensor>;

inline ScalarType reduce_dtype_of(const MixedPrecisionPolicy& policy) {
  return policy.reduce_dtype.value_or(kFloat);
}

/// TextNet's forward with each parameter cast at its use.
inline Tensor by_hand(const TextNetImpl& net, const Tensor& ids, ScalarType dtype) {
  namespace F = nn::functional;
  const auto linear = [dtype](const Tensor& x, const nn::Linear& layer) {
    return F::linear(x, layer->weight.to(dtype), layer->bias.to(dtype));
  };
  Tensor x = linear(F::embedding(ids, net.words->weight.to(dtype)).flatten(1), net.fc1);
  x = layer_norm(x, {net.width}, net.norm->weight.to(dtype), net.norm->bias.to(dtype));
  return linear(linear(x.relu(), net.fc2).tanh(), net.fc3);
}

/// One rank's gradients as the reduction gets them: of the cast parameters, in its dtype.
inline Tensors gradients_by_hand(TextNet net, const MixedPrecisionPolicy& policy, int rank,
                                 int step) {
  net->zero_grad();
  const TextBatch batch = text_batch(rank, step);
  const Tensor y = by_hand(*net, batch.ids, policy.param_dtype.value_or(kFloat));
  text_loss(y.to(kFloat), batch).backward();
  Tensors out;
  for (const Tensor& p : net->parameters())
    out.push_back(p.grad().detach().to(reduce_dtype_of(policy)).clone());
  net->zero_grad();
  return out;
}

/// The mean over ranks of parts[rank][i], float32.
inline Tensors means_of(const std::vector<Tensors>& parts, bool tree) {
  Tensors out;
  for (size_t i = 0; i < parts[0].size(); ++i) {
    Tensors of_ranks;
    for (const Tensors& p : parts) of_ranks.push_back(p[i]);
    out.push_back(summed(of_ranks, tree).to(kFloat) / static_cast<double>(parts.size()));
  }
  return out;
}

inline Tensors means_by_hand(TextNet net, const MixedPrecisionPolicy& policy, int ranks, int step,
                             bool tree) {
  std::vector<Tensors> parts;
  for (int r = 0; r < ranks; ++r) parts.push_back(gradients_by_hand(net, policy, r, step));
  return means_of(parts, tree);
}

/// This rank's shards have these gradients, in the dtype of the parameters.
inline void expect_shard_gradients(const nn::Module& net, const Tensors& whole) {
  const std::vector<TensorPart> parts = tensor_parts(net);
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const TensorPart& p = parts[i];
    ASSERT_EQ(p.cuts.size(), 1u);
    ASSERT_TRUE(p.local.grad().defined()) << p.name;
    const int64_t begin = p.cuts[0].begin;
    EXPECT_TRUE(
        same_bits(p.local.grad(), whole[i].reshape({-1}).slice(0, begin, begin + p.cuts[0].length)))
        << p.name;
  }
}
inline void expect_whole_state(const nn::Module& net, const nn::Module& whole) {
  const auto state = full_state_dict(net);
  for (const auto& item : whole.named_parameters())
    EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
}

inline FullyShardOptions with_policy(std::optional<ScalarType> param,
                                     std::optional<ScalarType> reduce = std::nullopt,
                                     ReduceOrder order = {}) {
  FullyShardOptions o;
  o.mp_policy.param_dtype = param;
  o.mp_policy.reduce_dtype = reduce;
  o.order = order;
  return o;
}

/// The layers, then the rest, which gives float32.
inline void shard_with_policy(const TextNet& net, const DeviceMesh& mesh,
                              FullyShardOptions options) {
  fully_shard(net->fc1, mesh, options);
  fully_shard(net->fc2, mesh, options);
  options.mp_policy.output_dtype = kFloat;
  fully_shard(net, mesh, options);
}

}  // namespace ramet::distributed
