// What backwards inside a backward find and what they leave: contexts of forwards, hooks, gradients
// that replicas' Functions bring from several devices.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/forward_context.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/module/replica_meeting.h"
#include "nn/module/sequential.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

// ---- contexts -----------------------------------------------------------------------------------

struct Noting final : autograd::ForwardContext {
  Noting(std::string* log, char name) : log(log), name(name) {}
  std::shared_ptr<void> enter() override {
    *log += name;
    return std::shared_ptr<void>(
        this, [l = log, n = name](void*) { *l += static_cast<char>(n - 'A' + 'a'); });
  }
  std::string* log;
  char name;
};
struct Refusing final : autograd::ForwardContext {
  std::shared_ptr<void> enter() override { fail("enter", "on purpose"); }
};
struct Throws : autograd::Function<Throws> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x, bool) { return x * 1; }
  static tensor_list backward(autograd::AutogradContext*, tensor_list gradients) {
    RAMET_CHECK(gradients[0].sum().item<double>() == 0, "backward", "on purpose");
    return {gradients[0], Tensor()};
  }
};

TEST(NestedContexts, TheLastOneGoesFirst) {
  for (const bool refused : {false, true})
    for (const double gradient : {0.0, 1.0}) {
      std::string log;
      Tensor y;
      {
        const autograd::ForwardContextGuard a(std::make_shared<Noting>(&log, 'A')), none(nullptr),
            b(std::make_shared<Noting>(&log, 'B')),
            c(refused ? std::make_shared<Refusing>() : nullptr);
        y = Throws::apply(ones({2}).set_requires_grad(true), true);
      }
      const std::string said = error_of([&] { (y * gradient).sum().backward(); });
      EXPECT_EQ(said.substr(0, 20), refused    ? "[enter] on purpose"
                                    : gradient ? "[backward] on purpos"
                                               : "no error");
      EXPECT_EQ(log, "ABba") << refused << gradient;
    }
}

struct InnerImpl : nn::Cloneable<InnerImpl> {
  InnerImpl() { InnerImpl::reset(); }
  void reset() override { norm = register_module("norm", nn::BatchNorm1d(4)); }
  Tensor forward(const Tensor& x) { return Throws::apply(norm(x), true); }
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(Inner);
struct OuterImpl : nn::Cloneable<OuterImpl> {
  OuterImpl() { OuterImpl::reset(); }
  void reset() override {
    inner = register_module("inner", Inner());
    norm = register_module("norm", nn::BatchNorm1d(4));
    last = register_module("last", nn::Linear(4, 1));
  }
  Tensor forward(const Tensor& x) { return last(norm(inner(x))); }
  Inner inner{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::Linear last{nullptr};
};
RAMET_MODULE(Outer);

TEST(NestedContexts, NoMeetingStaysBehindAnError) {
  with_groups(2, seconds(60), [](const Group& g) {
    Outer net;
    nn::convert_sync_batchnorm(*net);
    replicate(net->inner, g);
    replicate(net, g);
    const Tensor y = net(ones({3, 4}) * arange(3, kFloat).view({3, 1})).exp().sum();
    EXPECT_NE(error_of([&] { y.backward(Tensor()); }), "");
    EXPECT_EQ(nn::ReplicaMeeting::current(), nullptr);
    EXPECT_TRUE(autograd::ForwardContextGuard::all().empty());
  });
}

TEST(NestedContexts, AReplicatedModuleGoes) {
  with_groups(2, seconds(60), [](const Group& g) {
    const auto before = g.use_count();
    std::weak_ptr<nn::Module> linear, norm;
    {
      nn::Linear l(4, 4);
      nn::BatchNorm1d n(4);
      replicate(l, g);
      replicate(n, g);
      linear = l.ptr(), norm = n.ptr();
    }
    EXPECT_TRUE(linear.expired() && norm.expired());
    EXPECT_EQ(g.use_count(), before);
  });
}

// In the middle of its backward: the others wait for its gradients.
TEST(NestedContexts, AReplicatedModuleGoesInItsBackward) {
  for (const bool isolated : {false, true})
    with_groups(2, seconds(60), [isolated](const Group& g) {
      auto net = std::make_unique<nn::Sequential>(nn::Linear(4, 4), nn::Linear(4, 2));
      DdpOptions o;
      o.isolated = isolated;
      replicate(*net, g, o);
      const std::vector<Tensor> parameters = (*net)->parameters();
      const Tensor y = (*net)(full({3, 4}, g->rank() + 1.0));
      const std::weak_ptr<nn::Module> module = net->ptr();
      y.register_hook([&net, module](const Tensor& gradient) {
        net = nullptr;
        EXPECT_TRUE(module.expired());
        return gradient;
      });
      y.sum().backward();
      EXPECT_EQ(net, nullptr);
      std::vector<Tensor> gradients;
      for (const Tensor& p : parameters) gradients.push_back(p.grad());
      expect_equal_on_all_ranks(g, gradients);
    });
}

// The parent of this part notices that the part has changed.
TEST(NestedContexts, ANormInAReplicatedPart) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Sequential body(nn::Linear(4, 4)), net(body, nn::Linear(4, 2));
    replicate(body, g);
    replicate(net, g);
    nn::BatchNorm1d norm(4);
    body->push_back(norm);
    net(randn({6, 4}, Generator(Device(kCPU, 0), static_cast<uint64_t>(g->rank()))))
        .sum()
        .backward();
    expect_equal_on_all_ranks(g, {norm->running_mean});
  });
}

// Two parts of a replicated module that are computed again at the same time.
struct TwoLanesImpl : nn::Cloneable<TwoLanesImpl> {
  TwoLanesImpl() { TwoLanesImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    n1 = register_module("n1", nn::BatchNorm1d(4));
    n2 = register_module("n2", nn::BatchNorm1d(4));
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = a(x);
    const auto again = [] { return GradMode::is_enabled(); };
    const Piece one{[this, again](const Tensor&t) {
                      for (int i = 0; i < 2000 && again() && entered_by < 2; ++i)
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      return n1(t);
                    },
                    n1->parameters()},
        two{[this, again](const Tensor&t) {
              if (again()) {
                ++entered_by;
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
              }
              return n2(t.to("cpu:0")).to("cpu:1");
            },
            n2->parameters()};
    const Tensor first = part(How::again, one, h);
    return first + part(How::again, two, h.to("cpu:1")).to("cpu:0");
  }
  static inline std::atomic<int> entered_by{0};  // one for each rank: they are threads
  nn::Linear a{nullptr};
  nn::BatchNorm1d n1{nullptr}, n2{nullptr};
};
RAMET_MODULE(TwoLanes);

TEST(NestedContexts, NormsOnTwoLanesLearnOnce) {
  with_groups(2, seconds(60), [](const Group& g) {
    TwoLanes net;
    replicate(net, g);
    const auto seed = static_cast<uint64_t>(g->rank());
    net(randn({6, 4}, Generator(Device(kCPU, 0), seed))).pow(2).sum().backward();
    for (const nn::BatchNorm1d& n : {net->n1, net->n2})
      EXPECT_EQ(n->num_batches_tracked.item<int64_t>(), 1);
    g->barrier().wait();
    if (g->rank() == 0) TwoLanesImpl::entered_by = 0;
  });
}

// ---- what replicas' Functions bring -------------------------------------------------------------

// One part on each of `lanes` devices, and the weight, also used outside of them.
struct LanesImpl : nn::Cloneable<LanesImpl> {
  explicit LanesImpl(int lanes = 1, int64_t n = 4) : lanes(lanes), n(n) { LanesImpl::reset(); }
  void reset() override { w = register_parameter("w", ones({n})); }
  Tensor forward(const Tensor& x) {
    Tensor sum = beside ? w * x.sum() : zeros({n}, x.device());
    for (int d = 0; d < lanes; ++d) {
      const Device there = lanes == 1 ? x.device() : Device(kCPU, static_cast<DeviceIndex>(2 + d));
      const Piece piece{[this, there](const Tensor& t) { return w.to(there) * t.sum(); }, {w}};
      sum = sum + part(how, piece, x.to(there)).to(x.device());
    }
    return sum.view({1, -1});
  }
  int lanes;
  int64_t n;
  bool beside = false;
  How how = How::plain;
  Tensor w;
};
RAMET_MODULE(Lanes);

using Replicas = nn::parallel::DataParallel<Lanes>;
nn::parallel::DataParallelOptions two_devices() {
  return nn::parallel::DataParallelOptions(std::vector<Device>{"cpu:0", "cpu:1"});
}

TEST(NestedContexts, NoGradientOfAReplicaIsLost) {
  for (const How how : {How::plain, How::again, How::again_and_says})
    for (const bool beside : {false, true}) {
      Lanes net(6, int64_t{1} << 16);
      net->how = how;
      net->beside = beside;
      Replicas dp(net, two_devices());
      const double expected = 12 + 2 * beside;
      for (int step = 0; step < 40 / testing::one_repeat_in(); ++step) {
        net->zero_grad();
        dp(ones({2, 1}).set_requires_grad(true)).sum().backward();
        ASSERT_EQ(net->w.grad().min().item<double>(), expected) << static_cast<int>(how);
        ASSERT_EQ(net->w.grad().max().item<double>(), expected) << static_cast<int>(how);
      }
    }
}

// Parts on three devices in one that is computed again itself. Their sum depends on the order.
struct DeepLanesImpl : nn::Cloneable<DeepLanesImpl> {
  DeepLanesImpl() { DeepLanesImpl::reset(); }
  void reset() override { w = register_parameter("w", ones({4})); }
  Tensor forward(const Tensor& x) {
    const auto lane = [this](int d) {
      return [this, d](const Tensor& t) {
        if (GradMode::is_enabled())
          std::this_thread::sleep_for(std::chrono::milliseconds(20 * ((d + first) % 3)));
        return w.to(t.device()) * (t.sum() * (d == 0 ? 1e8 : d == 1 ? 1.0 : -1e8));
      };
    };
    const Piece all{[this, lane](const Tensor& t) {
                      Tensor sum = zeros({4}, t.device());
                      for (int d = 0; d < 3; ++d) {
                        const Device there(kCPU, static_cast<DeviceIndex>(2 + d));
                        sum = sum + part(How::again, {lane(d), {w}}, t.to(there)).to(t.device());
                      }
                      return sum;
                    },
                    {w}};
    return part(How::again, all, x).view({1, -1});
  }
  static inline std::atomic<int> first{0};  // of the lanes, in time
  Tensor w;
};
RAMET_MODULE(DeepLanes);

TEST(NestedContexts, OrderOfLanesInsideAPart) {
  std::vector<Tensor> all;
  for (int run = 0; run < 6; ++run) {
    DeepLanesImpl::first = run % 3;
    DeepLanes net;
    nn::parallel::DataParallel<DeepLanes> dp(net, two_devices());
    dp(ones({2, 1}).set_requires_grad(true)).sum().backward();
    all.push_back(net->w.grad().clone());
  }
  for (const Tensor& other : all) EXPECT_TRUE(same_bits(other, all[0])) << &other - all.data();
}

TEST(NestedContexts, HooksOfReplicasRunOnce) {
  for (const How how : {How::plain, How::again}) {
    Lanes net(3);
    net->how = how;
    Replicas dp(net, two_devices());
    std::atomic<int> calls{0};
    dp.replicas().register_pre_reduce_hook([&](int, const std::string&, const Tensor& g) {
      ++calls;
      return g * 10;
    });
    dp(ones({2, 1}).set_requires_grad(true)).sum().backward();
    EXPECT_EQ(calls, 2) << static_cast<int>(how);
    EXPECT_EQ(net->w.grad()[0].item<double>(), 60) << static_cast<int>(how);
  }
}

// The outer backward pass may capture gradients, or record.
TEST(NestedContexts, InsideOtherWalks) {
  Lanes net;
  net->how = How::again;
  Replicas dp(net, two_devices());
  const Tensor x = ones({2, 1}).set_requires_grad(true);
  EXPECT_EQ(autograd::grad({dp(x).sum()}, {x})[0][0][0].item<double>(), 4);
  net->zero_grad();
  dp(x).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  EXPECT_EQ(net->w.grad()[0].item<double>(), 2);
}

// An error at the end, when the sums over replicas are formed, is an error of the backward on all
// ranks, at once.
TEST(NestedContexts, AHookThatFailsAtTheEnd) {
  const auto start = std::chrono::steady_clock::now();
  with_groups(2, seconds(60), [](const Group& g) {
    Lanes net;
    net->how = How::again;
    DdpOptions o;
    o.devices = {"cpu:0", Device(kCPU, 1 + g->rank())};
    DistributedDataParallel<Lanes> ddp(net, g, o);
    const Tensor x = ones({2, 1}).set_requires_grad(true);
    ddp(x).sum().backward();
    EXPECT_EQ(net->w.grad()[0].item<double>(), 2);
    if (g->rank() == 0)
      net->w.register_hook([](const Tensor&) -> Tensor { fail("hook", "on purpose"); });
    EXPECT_ERROR_TEXT(ddp(x).sum().backward(),
                      g->rank() ? "a backward failed on this rank" : "on purpose");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, in_time(seconds(5)));
}

}  // namespace
}  // namespace ramet::distributed
