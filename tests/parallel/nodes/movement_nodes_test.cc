// Ring 2: Scatter, Gather, Broadcast, ReduceAdd and ReduceAddCoalesced as nodes.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/graph/node.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/comm_functions.h"
#include "parallel/nodes/scatter_gather.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace parallel;

Tensor leaf(const Values& v, Device device = kHost) {
  Tensor t = make(v, kDouble, device);
  t.requires_grad_();
  return t;
}
// Twice differentiable to something that is not linear.
Tensor cubed(const Tensor& t) { return t * t * t; }

void check(const autograd::CheckedFunction& f, const tensor_list& inputs) {
  EXPECT_TRUE(autograd::gradcheck(f, inputs));
  EXPECT_TRUE(autograd::gradgradcheck(f, inputs));
}

TEST(MovementNodes, Broadcast) {
  const auto f = [](const tensor_list& in) {
    tensor_list out = broadcast(in[0], {kHost, d(0), d(1), d(0)});
    for (Tensor& t : out) t = cubed(t).to(kHost);
    out[1] = out[1] * 2;
    return out;
  };
  check(f, {leaf({.3, -.7})});
  const Tensor x = leaf({.3, -.7});
  const auto out = broadcast(x, {kHost, d(0)});
  EXPECT_EQ(out[0].grad_fn()->name(), "BroadcastBackward");
  EXPECT_EQ(out[0]->data, x->data);
  EXPECT_TRUE(out[0].grad_fn()->flags & autograd::Node::kSpans);
}

TEST(MovementNodes, BroadcastCoalesced) {
  const auto f = [](const tensor_list& in) {
    const Tensor frozen = make({2}, kDouble);
    const auto rows = broadcast_coalesced({in[0], frozen, in[1]}, {d(0), kHost, d(1)});
    return tensor_list{cubed(rows[0][0]).to(kHost) * rows[1][1], cubed(rows[1][0]),
                       cubed(rows[1][2]), cubed(rows[2][2]).to(kHost),
                       (rows[2][0] * rows[2][0]).to(kHost)};
  };
  check(f, {leaf({.3, -.7}), leaf({.2, .5, -.4})});
  // A frozen tensor takes part in no node, and no gradient is replaced by zeros.
  const Tensor a = leaf({1, 2}), frozen = make({3, 4}, kDouble);
  const auto rows = broadcast_coalesced({a, frozen}, {d(0), d(1)});
  EXPECT_FALSE(rows[1][1].requires_grad());
  EXPECT_EQ(rows[1][0].grad_fn()->slot_count, 2);
  rows[1][0].sum().backward();
  EXPECT_EQ(values(a.grad()), (Values{1, 1}));
}

TEST(MovementNodes, ReduceAdd) {
  for (const ReduceOrder order : {ReduceOrder::fixed(), ReduceOrder::tree(4), ReduceOrder::any()}) {
    const auto f = [order](const tensor_list& in) {
      ReduceOptions options;
      options.order = order;
      return tensor_list{
          cubed(reduce_add({in[0].to(d(0)), in[1], in[0].to(d(1))}, d(2), options)).to(kHost)};
    };
    check(f, {leaf({.3, -.7}), leaf({.2, .5})});
  }
  const Tensor a = leaf({1, 2}, d(0)), b = make({3, 4}, kDouble, d(1));
  const Tensor sum = reduce_add({a, b}, d(1));
  EXPECT_EQ(sum.grad_fn()->name(), "ReduceAddBackward");
  sum.backward(make({5, 6}, kDouble, d(1)));
  EXPECT_EQ(values(a.grad()), (Values{5, 6}));
  EXPECT_EQ(a.grad().device(), d(0));
  ReduceOptions alias;
  alias.may_alias = true;
  const Tensor same = reduce_add({a}, d(0), alias);
  EXPECT_FALSE(same.is_same(a));
  EXPECT_EQ(same->data, a->data);
}

TEST(MovementNodes, ReduceAddCoalesced) {
  const auto f = [](const tensor_list& in) {
    const tensor_list sums = reduce_add_coalesced(
        {tensor_list{in[0].to(d(0)), in[1].to(d(0))}, tensor_list{in[0].to(d(1)), in[1].to(d(1))}},
        kHost);
    return tensor_list{cubed(sums[0]), cubed(sums[1])};
  };
  check(f, {leaf({.3, -.7}), leaf({.2, .5, .1})});
}

TEST(MovementNodes, ScatterOfPartlyUsedPieces) {
  const Tensor x = leaf({1, 2, 3, 4, 5});
  const auto pieces = scatter(x, many(3));
  (pieces[1] * 3).sum().backward();  // others deliver nothing: zeros
  EXPECT_EQ(values(x.grad()), (Values{0, 0, 3, 3, 0}));
  EXPECT_EQ(pieces[1].grad_fn()->name(), "ScatterBackward");
}

TEST(MovementNodes, PiecesMayBeWrittenInPlace) {
  const Tensor x = leaf({1, 2, 3, 4}, d(0));
  for (int device : {0, 1}) {  // the piece that shows x's memory, and the one that is a copy
    x.mutable_grad() = Tensor();
    const auto pieces = scatter(x, {d(0), d(1)});
    const Tensor piece = pieces[static_cast<size_t>(device)];
    const Tensor square = piece * piece;  // saves the piece
    piece.mul_(10);
    EXPECT_EQ(values(x), (Values{1, 2, 3, 4}));
    EXPECT_ERROR_TEXT(square.sum().backward(), "modified by an inplace operation");
    (piece * 2).sum().backward();
    EXPECT_EQ(values(x.grad()), device == 0 ? (Values{20, 20, 0, 0}) : (Values{0, 0, 20, 20}));
  }
}

TEST(MovementNodes, GatherPromotesAndConvertsBack) {
  const Tensor a = make({1, 2}, kFloat, d(0)), b = make({3}, kDouble, d(1));
  a.requires_grad_();
  b.requires_grad_();
  const Tensor g = gather({a, b}, 0, kHost, /*promote=*/true);
  EXPECT_EQ(g.scalar_type(), kDouble);
  g.backward(make({4, 5, 6}, kDouble));
  EXPECT_EQ(a.grad().scalar_type(), kFloat);
  EXPECT_EQ(values(a.grad()), (Values{4, 5}));
  EXPECT_EQ(values(b.grad()), (Values{6}));
}

TEST(MovementNodes, GatherAlongOtherDims) {
  const auto f = [](const tensor_list& in) {
    const Tensor m = in[0].view({2, 2}), n = in[1].view({2, 1});
    return tensor_list{cubed(gather({m.to(d(0)), n.to(d(1))}, 1, kHost))};
  };
  check(f, {leaf({.1, .2, .3, .4}), leaf({.5, -.6})});
  const auto scalars = [](const tensor_list& in) {
    return tensor_list{cubed(gather({in[0].sum().to(d(0)), in[1].sum()}, 0, d(2))).to(kHost)};
  };
  check(scalars, {leaf({.3, -.7}), leaf({.2, .5})});
}

TEST(MovementNodes, NoGradMakesNoNodes) {
  const Tensor x = leaf({1, 2, 3, 4});
  NoGradGuard off;
  for (const Tensor& t : scatter(x, many(2))) EXPECT_FALSE(t.requires_grad());
  for (const Tensor& t : broadcast(x, {d(0), d(1)})) EXPECT_FALSE(t.requires_grad());
  EXPECT_FALSE(gather({x, x}).requires_grad());
  EXPECT_FALSE(reduce_add({x, x}).requires_grad());
}

TEST(MovementNodes, GradientsAreNotShared) {
  // The gradient that gather hands to two leaves is cut from one memory: adding into one must not
  // reach the other.
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  gather({a, b}, 0, kHost).backward(make({1, 1, 1, 1}, kDouble));
  gather({a, b}, 0, kHost).backward(make({1, 2, 3, 4}, kDouble));
  EXPECT_EQ(values(a.grad()), (Values{2, 3}));
  EXPECT_EQ(values(b.grad()), (Values{4, 5}));
  a.mutable_grad().zero_();
  EXPECT_EQ(values(b.grad()), (Values{4, 5}));
}

// As LibTorch's C++ data_parallel calls them.
TEST(MovementNodes, AsFunctionObjects) {
  const std::vector<Device> devices{d(0), d(1)};
  const auto f = [&](const tensor_list& in) {
    autograd::Scatter scatter(devices, /*chunk_sizes=*/std::nullopt, /*dim=*/0);
    tensor_list pieces = fmap<Tensor>(scatter.apply({in[0]}));
    pieces = fmap(pieces, cubed);
    return autograd::Gather(kHost, /*dim=*/0).apply(std::move(pieces));
  };
  const Tensor x = leaf({.3, -.7, .5});
  check(f, {x});
  const Tensor whole = f({x}).front();
  EXPECT_EQ(values(whole), values(cubed(x)));
  whole.sum().backward();
  EXPECT_EQ(values(x.grad()), values(x.detach() * x.detach() * 3));

  autograd::Scatter sized(devices, std::vector<int64_t>{1, 2});
  EXPECT_EQ(sized({x})[1].sizes(), IntArrayRef({2}));
  EXPECT_EQ(sized({x})[1].device(), d(1));
  // The opposite of gathering numbers.
  autograd::Scatter numbers(devices, std::nullopt, 0, std::nullopt, /*unsqueeze_scalars=*/true);
  const tensor_list cut = numbers({leaf({3, 4})});
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].dim() + cut[1].dim(), 0);
  EXPECT_EQ(values(cut[1]), (Values{4}));
  EXPECT_EQ(values(autograd::Gather(kHost).apply(cut).front()), (Values{3, 4}));
  EXPECT_ERROR_TEXT(numbers({x}), "[Scatter] unsqueeze_scalars: got ");

  const Tensor a = leaf({1, 2}), b = leaf({3});
  const auto round = [&](const tensor_list& in) {
    const tensor_list spread = autograd::Broadcast(devices).apply(in);
    return autograd::ReduceAddCoalesced(kHost, 2).apply(fmap(spread, cubed));
  };
  check(round, {a, b});
  const tensor_list sums = round({a, b});
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(values(sums[0]), (Values{2, 16}));
  EXPECT_EQ(values(sums[1]), (Values{54}));
  EXPECT_ERROR_TEXT(sized({x, x}), "[Scatter] inputs: got 2 tensors, expected 1");
  EXPECT_ERROR_TEXT(autograd::ReduceAddCoalesced(kHost, 2).apply({x, x, x}),
                    "got 3 tensors, expected a multiple of 2");
}

// In the order of the graph, the last node's first, as on one device: 1e8 - 1e8 + 1, which is 1 in
// no other order.
TEST(MovementNodes, ContributionsFromSeveralDevicesHaveAnOrder) {
  for (Device device : {kHost, d(0), d(1)}) {
    Tensor x = make({3}, kFloat);
    x.requires_grad_();
    const Tensor first = x * 1, second = (x.to(device) * -1e8).to(kHost), last = x * 1e8;
    autograd::backward({first, second, last});
    EXPECT_EQ(x.grad().item<float>(), 1) << device;
  }
}

}  // namespace
}  // namespace ramet
