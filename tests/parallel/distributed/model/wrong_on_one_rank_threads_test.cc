// An error on one rank alone, before the ranks have compared anything: all get it at once, and can
// go on.
#include <gtest/gtest.h>

#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/model/device_mesh.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "parallel/distributed/stages/stages.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

nn::Sequential net_of() {
  manual_seed(3);
  return nn::Sequential(nn::Linear(3, 4), nn::Linear(4, 2));
}
void freeze(nn::Sequential& net) {
  for (const Tensor& p : net->parameters()) p.set_requires_grad(false);
}

// Of wrapping a net in one API, where rank 1 of 3 has done `spoil` to its net or options.
template <class Options> struct WrongCase {
  std::function<void(nn::Sequential&, Options&)> spoil;
  std::string says;
};

// wrap(net, group, options) on all ranks, once for each case; then without anything wrong, and a
// step of training by `train`.
template <class Options, class Wrap, class Train>
void expect_all_hear(const std::vector<WrongCase<Options>>& cases, const std::string& op,
                     const Wrap& wrap, const Train& train) {
  with_groups(3, seconds(60), [&](const Group& g) {
    for (const auto& c : cases) {
      nn::Sequential net = net_of();
      const std::vector<Tensor> before = net->parameters();
      Options o;
      if (g->rank() == 1) c.spoil(net, o);
      const std::string said = error_of([&] { wrap(net, g, o); });
      expect_part(said, "[" + op + "] rank 1: ");
      expect_part(said, c.says);
      // Nothing has happened to the net.
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_EQ(net->parameters()[i].impl(), before[i].impl());
    }
    nn::Sequential net = net_of();
    train(net, g, Options{});
  });
}

TEST(WrongOnOneRank, DistributedDataParallel) {
  using O = DdpOptions;
  using N = nn::Sequential;
  expect_all_hear<O>(
      {{[](N&, O& o) { o.sync_from = 3; }, "sync_from: got 3, expected 0 to 2"},
       {[](N&, O& o) { o.bucket_bytes = -1; }, "bucket_bytes: got -1"},
       {[](N&, O& o) { o.order = ReduceOrder::tree(4); }, "tree(V): got V = 4 and 3 ranks"},
       {[](N&, O& o) { o.ignored.names = {"nobody"}; }, "nothing in the module is called 'nobody'"},
       {[](N&, O& o) { o.ignored.names = {"*"}; }, "all parameters of the module are ignored"},
       {[](N&, O& o) { o.devices = {Device(kCPU, 100)}; }, "100"},
       {[](N& n, O&) { freeze(n); }, "doesn't have any parameter that requires a gradient"}},
      "ddp", [](N& n, const Group& g, const O& o) { DistributedDataParallel<N> ddp(n, g, o); },
      [](N& n, const Group& g, const O& o) {
        DistributedDataParallel<N> ddp(n, g, o);
        const std::string said =
            error_of([&] { ddp.register_comm_stage(g->rank() == 1 ? nullptr : fp16_stage()); });
        expect_part(said, "rank 1: [register_comm_stage] got no stage");
        ddp(full({2, 3}, g->rank() + 1.0)).sum().backward();
        EXPECT_TRUE(n->parameters()[0].grad().defined());
      });
}

TEST(WrongOnOneRank, DevicesOfATree) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Sequential net = net_of();
    DdpOptions o;
    o.order = ReduceOrder::tree(4);
    o.devices = {"cpu:0", "cpu:1"};
    if (g->rank() == 1) o.devices = {"cpu:0", "cpu:1", "cpu:2"};
    const std::string said =
        error_of([&] { DistributedDataParallel<nn::Sequential> d(net, g, o); });
    expect_part(said, "[ddp] rank 1: [ddp] tree(V): got V = 4, 2 ranks and 3 devices here");
  });
}

TEST(WrongOnOneRank, Replicate) {
  using O = ReplicateOptions;
  using N = nn::Sequential;
  const auto wrap = [](N& n, const Group& g, const O& o) { replicate(n, g, o); };
  expect_all_hear<O>(
      {{[](N&, O& o) { o.sync_from = -1; }, "sync_from: got -1, expected 0 to 2"},
       {[](N&, O& o) { o.order = ReduceOrder::tree(8); }, "tree(V): got V = 8 and 3 ranks"},
       {[](N&, O& o) { o.batch = Batch::whole; }, "expected Batch::local"},
       {[](N&, O& o) { o.stages = {nullptr}; }, "stages: expected none, or isolated"},
       {[](N&, O& o) { o.ignored.names = {"*"}; }, "all parameters of the module are ignored"},
       {[](N& n, O&) { replicate(n, make_local_groups(1)[0]); },
        "can only be applied to a module once"},
       {[](N& n, O&) { freeze(n); }, "doesn't have any parameter that requires a gradient"}},
      "replicate", wrap, [&](N& n, const Group& g, const O& o) {
        wrap(n, g, o);
        nn::call(*n, full({2, 3}, g->rank() + 1.0)).sum().backward();
        EXPECT_TRUE(n->parameters()[0].grad().defined());
      });
}

TEST(WrongOnOneRank, FullyShard) {
  using O = FullyShardOptions;
  using N = nn::Sequential;
  const auto wrap = [](N& n, const Group& g, const O& o) { fully_shard(n, g, o); };
  expect_all_hear<O>(
      {{[](N&, O& o) { o.average = Average::weighted; }, "average: got weighted"},
       {[](N&, O& o) { o.order = ReduceOrder::tree(2); }, "order: got tree(2), expected tree(3)"},
       {[](N& n, O&) { replicate(n, make_local_groups(1)[0]); }, "managed by `replicate`"},
       {[](N& n, O&) {
          n->forward(ones({1, 3})).sum().backward();
        },
        "has a gradient or hooks"}},
      "fully_shard", wrap, [&](N& n, const Group& g, const O& o) {
        wrap(n, g, o);
        nn::call(*n, full({2, 3}, g->rank() + 1.0)).sum().backward();
        EXPECT_EQ(full_state_dict(*n).size(), 4u);
      });
}

// Over a mesh of two dimensions a row gets the error first, and its columns from it.
TEST(WrongOnOneRank, FullyShardOverAMesh) {
  with_groups(4, seconds(60), [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"outer", "inner"});
    nn::Sequential net = net_of();
    FullyShardOptions o;
    if (g->rank() == 3) o.average = Average::weighted;
    const std::string said = error_of([&] { fully_shard(net, mesh, o); });
    expect_part(said, "[fully_shard] ");
    expect_part(said, "rank 1: [fully_shard] average: got weighted, expected mean or sum");
    o = {};
    fully_shard(net, mesh, o);
    nn::call(*net, full({2, 3}, g->rank() + 1.0)).sum().backward();
  });
}

}  // namespace
}  // namespace ramet::distributed
