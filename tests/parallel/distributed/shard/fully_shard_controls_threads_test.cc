// fully_shard with ranks as threads: the settings of its handle. They change when memory comes and
// goes, in which order, and which rank waits, but never which bits.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

#include "nn/layers/basic/linear.h"
#include "nn/optim/sgd.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

// A group for each layer, one for the rest.
void shard_each(const TextNet& net, const DeviceMesh& mesh, const FullyShardOptions& options = {}) {
  fully_shard(net->words, mesh, options);
  for (const nn::Linear& layer : {net->fc1, net->fc2, net->fc3}) fully_shard(layer, mesh, options);
  fully_shard(net, mesh, options);
}

struct Handles {
  explicit Handles(const TextNet& net)
      : root(fully_shard_handle(net)),
        words(fully_shard_handle(net->words)),
        fc1(fully_shard_handle(net->fc1)),
        fc2(fully_shard_handle(net->fc2)),
        fc3(fully_shard_handle(net->fc3)) {}
  FullyShardHandle root, words, fc1, fc2, fc3;
  // s: sharded, g: on its way, G: here.
  std::string layers() const {
    std::string out;
    for (const auto& h : {fc1, fc2, fc3}) out += "sgG"[static_cast<size_t>(h.state())];
    return out;
  }
  std::string all() const {
    std::string out = layers();
    for (const auto& h : {words, root}) out += "sgG"[static_cast<size_t>(h.state())];
    return out;
  }
};

// This rank's gradients are its parts of the whole ones.
void expect_gradients(const TextNet& net, const TextNet& whole, const std::string& where) {
  for (const TensorPart& part : tensor_parts(*net)) {
    const Tensor& want = whole->named_parameters()[part.name].grad();
    ASSERT_EQ(part.local.grad().defined(), want.defined()) << where << part.name;
    if (!want.defined()) continue;
    const Cut& cut = part.cuts[0];
    const Tensor mine = want.reshape({-1}).slice(0, cut.begin, cut.begin + cut.length);
    EXPECT_TRUE(same_bits(part.local.grad(), mine)) << where << part.name;
  }
}

Tensor loss_of(TextNet net, int rank, int step) {
  const TextBatch batch = text_batch(rank, step);
  return text_loss(net(batch.ids), batch);
}

// Three microbatches a step, each reduced, compared with DistributedDataParallel.
void train_with_every_combination(const Group& g, const DeviceMesh& mesh) {
  const int n = g->size();
  DdpOptions ddp_options;
  FullyShardOptions options;
  options.order = ddp_options.order = ReduceOrder::tree(n);
  for (int set = 0; set < 32; ++set) {
    // A quarter of them still has each two settings in all four ways.
    const int odd = (set ^ set >> 1 ^ set >> 3) | (set ^ set >> 2 ^ set >> 4);
    if (testing::one_repeat_in() > 1 && (odd & 1)) continue;
    const std::string where = "set " + std::to_string(set) + ": ";
    TextNet whole = text_net(), net = text_net();
    DistributedDataParallel<TextNet> ddp(whole, g, ddp_options);
    shard_each(net, mesh, options);
    const Handles h(net);
    if (set & 2) h.root.set_reshard_after_backward(false);
    if (set & 4) h.root.set_reshard_after_forward(!(set & 2));
    if (set & 8) {
      h.root.set_modules_to_forward_prefetch({h.fc3, h.words});
      h.fc1.set_modules_to_forward_prefetch({h.fc3, h.fc2, h.words});
      h.fc3.set_modules_to_backward_prefetch({h.fc1, h.root});
      h.fc2.set_modules_to_backward_prefetch({h.words, h.fc3});
    }
    if (set & 16) h.words.set_unshard_in_backward(false);
    optim::SGD a(whole->parameters(), optim::SGDOptions(0.05).momentum(0.9)),
        b(net->parameters(), optim::SGDOptions(0.05).momentum(0.9));
    for (int step = 0; step < 2; ++step) {
      a.zero_grad();
      b.zero_grad();
      for (int micro = 0; micro < 3; ++micro) {
        const TextBatch batch = text_batch(g->rank(), 10 * step + micro);
        h.root.set_is_last_backward(!(set & 1) || micro == 2);
        text_loss(ddp(batch.ids), batch).backward();
        text_loss(net(batch.ids), batch).backward();
      }
      expect_gradients(net, whole, where);
      a.step();
      b.step();
    }
    const auto state = full_state_dict(*net);
    for (const auto& item : whole->named_parameters())
      EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << where << item.key();
    // Given back after the forward, and not gathered again.
    const bool absent = (set & 16) && !(set & 4);
    EXPECT_EQ(h.all(), !(set & 2) ? "sssss" : absent ? "GGGsG" : "GGGGG") << where;
  }
}
TEST(FullyShardControls, SameBitsWithEveryCombination) {
  with_groups_of(2, [](const Group& g) { train_with_every_combination(g, DeviceMesh(g)); });
}
TEST(FullyShardControls, SameBitsOnAMeshOfTwoDimensions) {
  with_groups_of(4, [](const Group& g) {
    train_with_every_combination(g, init_device_mesh(g, {2, 2}, {"replicate", "shard"}));
  });
}

// Rank 0 comes out of a backward that rank 1 begins only afterwards. Of the last one it cannot.
TEST(FullyShardControls, ABackwardThatIsNotTheLastDoesNotWait) {
  std::promise<void> promise;
  const std::shared_future<void> out = promise.get_future().share();
  with_groups_of(2, [&](const Group& g) {
    TextNet net = text_net(), whole = text_net();
    fully_shard(net, g);
    DistributedDataParallel<TextNet> ddp(whole, g);
    const FullyShardHandle handle = fully_shard_handle(net);
    handle.set_is_last_backward(false);
    const Tensor loss = loss_of(net, g->rank(), 0);
    if (g->rank() == 1) {
      EXPECT_EQ(out.wait_for(seconds(30)), std::future_status::ready) << "rank 0 waits";
    }
    loss.backward();
    if (g->rank() == 0) promise.set_value();
    for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
    handle.finalize_backward();
    handle.finalize_backward();  // nothing is left
    TextBatch batch = text_batch(g->rank(), 0);
    text_loss(ddp(batch.ids), batch).backward();
    expect_gradients(net, whole, "finalized: ");

    // Again, up to the beginning of the next backward.
    loss_of(net, g->rank(), 1).backward();
    expect_gradients(net, whole, "not there yet: ");
    handle.set_is_last_backward(true);
    const Tensor last = loss_of(net, g->rank(), 2);
    expect_gradients(net, whole, "a forward brings nothing: ");
    last.backward();
    for (const int step : {1, 2}) {
      batch = text_batch(g->rank(), step);
      text_loss(ddp(batch.ids), batch).backward();
    }
    expect_gradients(net, whole, "last: ");

    // The norm is that of all of it.
    handle.set_is_last_backward(false);
    loss_of(net, g->rank(), 3).backward();
    batch = text_batch(g->rank(), 3);
    text_loss(ddp(batch.ids), batch).backward();
    const double norm = clip_grad_norm_(*net, 1e9);
    EXPECT_NEAR(norm, nn::utils::clip_grad_norm_(whole->parameters(), 1e9), 1e-5 * norm);
    expect_gradients(net, whole, "clipped: ");
  });
}

// What rank 0 has left under way fails, because rank 1's backward does: said by what comes next.
TEST(FullyShardControls, AReductionThatFailsLater) {
  enum Next { finalize, norm, backward, forward };
  for (const Next next : {finalize, norm, backward, forward}) {
    std::promise<void> promise;
    const std::shared_future<void> out = promise.get_future().share();
    with_groups(2, seconds(20), [&](const Group& g) {
      TextNet net = text_net();
      fully_shard(net, g);
      const FullyShardHandle handle = fully_shard_handle(net);
      loss_of(net, g->rank(), 0).backward();
      std::vector<Tensor> before;
      for (const Tensor& p : net->parameters()) before.push_back(p.grad().clone());
      handle.set_is_last_backward(false);
      const auto hook = net->fc1->register_forward_hook(
          [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
            if (g->rank() == 1)
              y[0].register_hook([](const Tensor&) { throw std::logic_error("Badness!"); });
          });
      const Tensor first = loss_of(net, g->rank(), 1);
      net->fc1->remove_forward_hook(hook);
      const Tensor second = loss_of(net, g->rank(), 2);
      if (g->rank() == 0) {
        first.backward();
        promise.set_value();
        const std::string text = error_of([&] {
          if (next == finalize) handle.finalize_backward();
          if (next == norm) clip_grad_norm_(*net, 1.0);
          if (next == backward) second.backward();
          if (next == forward) loss_of(net, 0, 3);
        });
        expect_part(text, "aborted by rank 1: a backward failed on this rank");
      } else {
        ASSERT_EQ(out.wait_for(seconds(30)), std::future_status::ready);
        EXPECT_ERROR_TEXT(first.backward(), "Badness!");
      }
      EXPECT_THROW(loss_of(net, g->rank(), 3), CommError);
      if (next == forward && g->rank() == 0) {
        EXPECT_THROW(handle.finalize_backward(), CommError);
      }
      handle.finalize_backward();  // what has not come never comes
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_TRUE(same_bits(net->parameters()[i].grad(), before[i]));
    });
  }
}

TEST(FullyShardControls, AStepBeforeTheGradientsCame) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_each(net, DeviceMesh(g));
    const FullyShardHandle handle = fully_shard_handle(net);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.05));
    loss_of(net, g->rank(), 0).backward();
    handle.set_is_last_backward(false);
    loss_of(net, g->rank(), 1).backward();
    optimizer.step();
    EXPECT_ERROR_TEXT(loss_of(net, g->rank(), 2),
                      "gradients of a backward that was not the last one had not come");
    // Nothing else is wrong.
    handle.finalize_backward();
    optimizer.step();
    loss_of(net, g->rank(), 2).backward();
    handle.finalize_backward();
    EXPECT_EQ(Handles(net).all(), "sssss");
  });
}

// As a pipeline does. The order of the forwards is there for the second backward only where the
// first one was not the last.
TEST(FullyShardControls, SeveralForwardsThenTheirBackwards) {
  with_groups_of(2, [](const Group& g) {
    for (const bool kept : {true, false}) {
      TextNet net = text_net(), whole = text_net();
      shard_each(net, DeviceMesh(g));
      DistributedDataParallel<TextNet> ddp(whole, g);
      const Handles h(net);
      std::vector<std::string> seen;
      net->fc2->register_forward_hook(
          [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
            y[0].register_hook([&](const Tensor&) { seen.push_back(h.layers()); });
          });
      const Tensor a = loss_of(net, g->rank(), 0), b = loss_of(net, g->rank(), 1);
      h.root.set_is_last_backward(!kept);
      a.backward();
      h.root.set_is_last_backward(true);
      b.backward();
      EXPECT_EQ(seen, (std::vector<std::string>{"sgs", kept ? "sgs" : "sss"}));
      for (const int step : {0, 1}) {
        const TextBatch batch = text_batch(g->rank(), step);
        text_loss(ddp(batch.ids), batch).backward();
      }
      expect_gradients(net, whole, kept ? "kept: " : "not kept: ");
    }
  });
}

// A backward collects between the replicas with the setting of its own time.
TEST(FullyShardControls, SettingsThatChangeWhileAReductionIsUnderWay) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"replicate", "shard"});
    TextNet nets[] = {text_net(), text_net()};
    for (const TextNet& net : nets) {
      shard_each(net, mesh);
      const FullyShardHandle h = fully_shard_handle(net);
      for (int step = 0; step < 6; ++step) {
        h.set_requires_all_reduce(step % 3 != 1);
        h.set_requires_gradient_sync(step != 3);
        h.set_is_last_backward(&net == &nets[0] || step == 5);
        loss_of(net, g->rank(), step).backward();
      }
    }
    // On one device: the mean of 24 losses' gradients, six each.
    TextNet whole = text_net();
    for (int step = 0; step < 6; ++step)
      for (int rank = 0; rank < 4; ++rank) loss_of(whole, rank, step).div(4).backward();
    const auto parts = tensor_parts(*nets[0]), others = tensor_parts(*nets[1]);
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(same_bits(parts[i].local.grad(), others[i].local.grad())) << parts[i].name;
      const Cut& cut = parts[i].cuts[0];
      const Tensor want = whole->named_parameters()[parts[i].name].grad().reshape({-1});
      EXPECT_TRUE(parts[i].local.grad().allclose(want.slice(0, cut.begin, cut.begin + cut.length),
                                                 1e-5, 1e-6))
          << parts[i].name;
    }
  });
}

// With and without gathering ahead by itself.
void with_sharded_layers(
    const std::function<void(const Group&, TextNet&, const Handles&, bool prefetch)>& f) {
  for (const bool prefetch : {true, false})
    with_groups_of(2, [&f, prefetch](const Group& g) {
      TextNet net = text_net();
      FullyShardOptions options;
      options.prefetch = prefetch;
      shard_each(net, DeviceMesh(g), options);
      f(g, net, Handles(net), prefetch);
    });
}

// What is on its way when a layer's forward begins.
TEST(FullyShardControls, ListsForTheForward) {
  with_sharded_layers([](const Group& g, TextNet& net, const Handles& h, bool prefetch) {
    std::vector<std::string> seen;
    for (nn::Linear layer : {net->fc1, net->fc2, net->fc3})
      layer->register_forward_hook([&](nn::Module&, const std::vector<Tensor>&,
                                       std::vector<Tensor>&) { seen.push_back(h.layers()); });
    const auto forwards = [&](const std::vector<std::string>& expected) {
      const NoGradGuard off;
      seen.clear();
      net(text_batch(g->rank(), 0).ids);
      EXPECT_EQ(seen, expected);
      EXPECT_EQ(h.all(), "sssss");
    };
    // Before anything is learned.
    h.fc1.set_modules_to_forward_prefetch({h.fc2, h.fc3});
    forwards({"Ggg", "sGg", "ssG"});
    // Not the one that came next.
    h.fc1.set_modules_to_forward_prefetch({h.fc3});
    forwards({"Gsg", "sGg", "ssG"});
    // From the outermost one on, and one that is over.
    h.root.set_modules_to_forward_prefetch({h.fc1, h.fc3});
    h.fc2.set_modules_to_forward_prefetch({h.fc1});
    forwards({"Gsg", "gGg", "gsG"});
    for (const FullyShardHandle& one : {h.root, h.fc1, h.fc2})
      one.set_modules_to_forward_prefetch({});
    forwards({"G" + std::string(prefetch ? "g" : "s") + "s",
              "sG" + std::string(prefetch ? "g" : "s"), "ssG"});
  });
}

// What is on its way when a layer's backward is done.
TEST(FullyShardControls, ListsForTheBackward) {
  with_sharded_layers([](const Group& g, TextNet& net, const Handles& h, bool prefetch) {
    std::vector<std::string> seen;
    for (nn::Linear layer : {net->fc1, net->fc2})
      layer->register_forward_hook(
          [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
            y[0].register_hook([&](const Tensor&) { seen.push_back(h.layers()); });
          });
    const auto backwards = [&](const std::vector<std::string>& expected) {
      const Tensor loss = loss_of(net, g->rank(), 0);
      seen.clear();
      loss.backward();
      EXPECT_EQ(seen, expected);
      EXPECT_EQ(h.all(), "sssss");
    };
    const std::string next = prefetch ? "g" : "s";
    backwards({"s" + next + "s", next + "ss"});
    h.fc3.set_modules_to_backward_prefetch({h.fc2, h.fc1});
    backwards({"ggs", "gss"});
    // The order that a list makes, not that of the forward.
    h.fc3.set_modules_to_backward_prefetch({h.fc1});
    backwards({"gss", "gss"});
    // All that is named, and itself is no trouble.
    h.fc3.set_modules_to_backward_prefetch({h.fc1, h.fc3, h.fc2});
    backwards({"ggs", "gss"});
    h.fc3.set_modules_to_backward_prefetch({});
    backwards({"s" + next + "s", next + "ss"});
  });
}

TEST(FullyShardControls, ModulesThatCannotBeNamed) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net(), other = text_net();
    shard_all(net, DeviceMesh(g));
    shard_all(other, DeviceMesh(g));
    const FullyShardHandle h = fully_shard_handle(net), fc1 = fully_shard_handle(net->fc1),
                           fc2 = fully_shard_handle(net->fc2),
                           foreign = fully_shard_handle(other->fc2);
    h.set_modules_to_forward_prefetch({fc2});
    for (const auto set : {&FullyShardHandle::set_modules_to_forward_prefetch,
                           &FullyShardHandle::set_modules_to_backward_prefetch})
      EXPECT_ERROR_TEXT((h.*set)({fc1, foreign}), "at index 1 got ");
    EXPECT_ERROR_TEXT(h.set_modules_to_forward_prefetch({fully_shard_handle(net->fc3)}),
                      "fully_shard was not called on ");
    // As it was set before.
    std::string seen;
    net->words->register_forward_hook(
        [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>&) {
          for (const auto& one : {fc1, fc2}) seen += "sgG"[static_cast<size_t>(one.state())];
        });
    loss_of(net, g->rank(), 0).backward();
    EXPECT_EQ(seen, "sg");
  });
}

// No group gets the values of another, and no rank waits for ever.
TEST(FullyShardControls, ListsThatDifferBetweenRanks) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_each(net, DeviceMesh(g));
    const Handles h(net);
    h.fc1.set_modules_to_forward_prefetch({g->rank() ? h.fc2 : h.fc3});
    EXPECT_ERROR_TEXT(loss_of(net, g->rank(), 0), "/gather [weight .. bias]\"");
    EXPECT_THROW(loss_of(net, g->rank(), 0), CommError);
  });
}

TEST(FullyShardControls, WhatStaysAfterABackward) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_each(net, DeviceMesh(g));
    const Handles h(net);
    const auto step = [&] { loss_of(net, g->rank(), 0).backward(); };
    h.root.set_reshard_after_backward(false, /*recurse=*/false);
    step();
    EXPECT_EQ(h.all(), "ssssG");
    h.root.set_reshard_after_backward(false);
    step();
    EXPECT_EQ(h.all(), "GGGGG");
    h.root.set_reshard_after_forward(false);
    h.fc2.set_reshard_after_backward(true);
    step();
    EXPECT_EQ(h.all(), "GsGGG");
    // A rank that needs less has the same ones.
    Tensor early;
    net->fc1->register_forward_hook(
        [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) { early = y[0]; });
    h.root.set_reshard_after_forward(true);
    const Tensor loss = loss_of(net, g->rank(), 1);
    (g->rank() ? loss : early.sum()).backward();
    EXPECT_EQ(h.all(), "GsGGG");
    h.root.set_reshard_after_backward(true);
    step();
    EXPECT_EQ(h.all(), "sssss");
  });
}

// Most ranks' shards are empty, and all notice that an optimizer has changed the parameter.
TEST(FullyShardControls, StaysUntilItIsChanged) {
  with_groups_of(4, [](const Group& g) {
    FactorsOf net(2);
    for (const Factor& f : net->factors) fully_shard(f, g);
    fully_shard(net, g);
    const FullyShardHandle h = fully_shard_handle(net);
    h.set_reshard_after_backward(false);
    h.set_reshard_after_forward(false);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.5));
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      const Tensor y = net(full({2}, 1.0), std::vector<int>{0, 1});
      EXPECT_EQ(y.item<double>(), 6 - 2.0 * step);  // each of the four numbers goes down by a half
      y.backward();
      for (const Factor& f : net->factors)
        EXPECT_EQ(fully_shard_handle(f).state(), ShardState::gathered);
      optimizer.step();
    }
  });
}

TEST(FullyShardControls, ValuesThatNoBackwardNeeds) {
  std::vector<std::string> said(2);
  with_groups_of(2, [&said](const Group& g) {
    TextNet net = text_net();
    shard_each(net, DeviceMesh(g));
    const Handles h(net);
    h.words.set_reshard_after_backward(false);
    loss_of(net, g->rank(), 0).backward();
    EXPECT_EQ(h.all(), "sssGs");  // gathered for nothing
    h.words.reshard();
    h.words.set_unshard_in_backward(false);
    loss_of(net, g->rank(), 0).backward();
    EXPECT_EQ(h.all(), "sssss");
    h.fc2.set_unshard_in_backward(false);
    const Tensor loss = loss_of(net, g->rank(), 0);
    said[static_cast<size_t>(g->rank())] = error_of([&] { loss.backward(); });
  });
  expect_mistake_of_all(said, "set_unshard_in_backward(false)");
}

// Also what has not come to grad() yet.
TEST(FullyShardControls, ZeroGradDropsWhatWasCollected) {
  with_groups_of(4, [](const Group& g) {
    for (const auto& mesh : {DeviceMesh(g), init_device_mesh(g, {2, 2}, {"replicate", "shard"})}) {
      nn::Linear net(nn::LinearOptions(8, 1).bias(false));
      fully_shard(net, mesh);
      const FullyShardHandle h = fully_shard_handle(net);
      const auto backward = [&](double x) { net(full({1, 8}, x)).sum().backward(); };
      const auto expect = [&](double expected) {
        for (const Tensor& p : net->parameters())
          EXPECT_TRUE(p.grad().equal(full_like(p.detach(), expected)));
      };
      for (const bool none : {true, false}) {
        h.set_requires_gradient_sync(false);
        backward(1000);
        net->zero_grad(none);
        backward(2);
        h.set_requires_gradient_sync(true);
        backward(1);
        expect(3);
        if (mesh.ndim() == 2) {  // of the sum over the shards
          h.set_requires_all_reduce(false);
          backward(1000);
          net->zero_grad(none);
          h.set_requires_all_reduce(true);
          backward(1);
          expect(1);
        }
        // On its way.
        h.set_is_last_backward(false);
        backward(1000);
        net->zero_grad(none);
        h.set_is_last_backward(true);
        backward(1);
        expect(1);
        net->zero_grad(none);
      }
    }
  });
}

// The deadline of the group that was given, whenever it is set.
TEST(FullyShardControls, DeadlineOfReductions) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(4, 4);
    fully_shard(net, g);
    g->set_timeout(Milliseconds(300));
    const Tensor loss = net(ones({1, 4})).sum();
    const auto begun = std::chrono::steady_clock::now();
    if (g->rank() == 0) {
      EXPECT_THROW(loss.backward(), CommError);
      EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(20));
    } else {
      while (error_of([&] { g->check(); }) == "no error" &&
             std::chrono::steady_clock::now() - begun < seconds(20))
        std::this_thread::sleep_for(Milliseconds(20));
    }
  });
}

}  // namespace
}  // namespace ramet::distributed
