// Buffers over the ranks, and what graphs keep of them.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "autograd/grad_mode.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using Rows = nn::parallel::Broadcast<Tensor>;

struct BuffersImpl : nn::Cloneable<BuffersImpl> {
  BuffersImpl() { BuffersImpl::reset(); }
  void reset() override {
    using nn::BufferPolicy;
    w = register_parameter("w", ones({1}));
    first = register_buffer("first", zeros({1}));
    mean = register_buffer("mean", zeros({1}), BufferPolicy::mean);
    most = register_buffer("most", zeros({1}), BufferPolicy::max);
    own = register_buffer("own", zeros({1}), BufferPolicy::per_replica);
    equal = register_buffer("equal", zeros({1}), BufferPolicy::all_equal);
    constant = register_buffer("constant", full({1}, 3));
  }
  // `by`: what this rank adds to them; `odd`: to `equal`.
  Tensor forward(const Tensor& x, double by, double odd) {
    {
      const NoGradGuard off;
      if (by != 0)
        for (const Tensor& t : {first, mean, most, own}) t.add_(by);
      if (odd != 0) equal.add_(odd);
    }
    return (w * x * constant * first).sum();
  }
  Tensor w, first, mean, most, own, equal, constant;
};
RAMET_MODULE(Buffers);

struct NarrowImpl : nn::Cloneable<NarrowImpl> {
  NarrowImpl() { NarrowImpl::reset(); }
  void reset() override {
    w = register_parameter("w", ones({1}));
    n = register_buffer("n", zeros({1}, kHalf), nn::BufferPolicy::sum);
  }
  Tensor forward(const Tensor& x, double by) {
    const NoGradGuard off;
    if (by != 0) n.add_(by);
    EnableGradGuard on;
    return (w * x).sum();
  }
  Tensor w, n;
};
RAMET_MODULE(Narrow);

// Of float16, 2048 + 1 is 2048, whichever number of times.
TEST(DdpBuffers, NarrowSumsAreRoundedOnce) {
  with_groups(3, seconds(60), [](const Group& g) {
    Narrow net;
    DistributedDataParallel<Narrow> ddp(net, g, DdpOptions());
    ddp(ones({1, 1}), g->rank() == 0 ? 2048. : 1.).backward();
    ddp(ones({1, 1}), 0.0);
    EXPECT_EQ(net->n.item<float>(), 2050);
    EXPECT_EQ(net->n.scalar_type(), kHalf);
  });
}

TEST(DdpBuffers, FollowTheirPolicies) {
  with_groups(3, seconds(60), [](const Group& g) {
    Buffers net;
    DdpOptions o;
    o.average = Average::sum;
    DistributedDataParallel<Buffers> ddp(net, g, o);
    const double by = g->rank() + 1;
    const auto value = [](const Tensor& t) { return t.item<double>(); };
    const uint32_t version = net->constant.version();
    ddp(ones({1, 1}), by, 0.0).backward();
    EXPECT_EQ(value(net->w.grad()),
              3.0 * (1 + 2 + 3));  // each with its own, as the forward left it
    ddp(ones({1, 1}), 0.0, 0.0);   // they are equal from here on
    EXPECT_EQ(value(net->first), 1);
    EXPECT_EQ(value(net->mean), 2);
    EXPECT_EQ(value(net->most), 3);
    EXPECT_EQ(value(net->own), 0);  // a replica's own: the source's never changes
    EXPECT_EQ(net->constant.version(), version);
    // Evaluation waits for no other rank.
    net->eval();
    if (g->rank() == 0) ddp(ones({1, 1}), 0.0, 0.0);
    net->train();
    // A rank's own value where all must be equal.
    ddp(ones({1, 1}), 0.0, g->rank() == 2 ? 5.0 : 0.0);
    EXPECT_ERROR_TEXT(ddp(ones({1, 1}), 0.0, 0.0),
                      "buffer 'equal' of policy all_equal: rank 2 has another value than rank 0");
  });
}

// y = w x scale + b, where `scale` follows the inputs. The forwards with `by` raise it, and it is
// part of what their graphs keep.
struct ScaledImpl : nn::Cloneable<ScaledImpl> {
  explicit ScaledImpl(nn::BufferPolicy policy = nn::BufferPolicy::first) : policy(policy) {
    ScaledImpl::reset();
  }
  void reset() override {
    norm = register_module("norm", nn::BatchNorm1d(2));
    w = register_parameter("w", from({0.5, -1.5}));
    scale = register_buffer("scale", ones({2}), policy);
  }
  Tensor forward(const Tensor& x, double by) {
    if (by != 0) {
      const NoGradGuard off;
      scale.add_(by);
    }
    return (norm(x) * w * scale).pow(2).sum();
  }
  static Tensor from(std::initializer_list<double> values) {
    Tensor t = zeros({static_cast<int64_t>(values.size())});
    int64_t i = 0;
    for (double v : values) t[i++] = v;
    return t;
  }
  nn::BufferPolicy policy;
  nn::BatchNorm1d norm{nullptr};
  Tensor w, scale;
};
RAMET_MODULE(Scaled);

// Rows of a batch, all different.
Tensor rows(int64_t n, double start) {
  Tensor t = zeros({n, 2});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < 2; ++j)
      t[i][j] = std::sin(start + 1.3 * static_cast<double>(i) + 0.7 * static_cast<double>(j * j));
  return t;
}

// The derivative of sum((norm(x) w scale)^2) by w, in double; norm's weight is 1, its bias 0.
std::vector<double> by_w(const Tensor& x, const std::vector<double>& scale) {
  const Tensor w = ScaledImpl::from({0.5, -1.5});
  std::vector<double> out;
  for (int64_t j = 0; j < 2; ++j) {
    const int64_t n = x.size(0);
    double mean = 0, var = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i][j].item<double>() / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      var += std::pow(x[i][j].item<double>() - mean, 2) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      squares += std::pow(x[i][j].item<double>() - mean, 2) / (var + 1e-5);
    const double s = scale[static_cast<size_t>(j)];
    out.push_back(2 * w[j].item<double>() * s * s * squares);
  }
  return out;
}

// The first forward writes a buffer and keeps it for its backward; before the second
// one the ranks write rank 0's value into it. One process has no such write, and its gradients are
// right: so are these. `devices`: of each rank; the rows of each replica are normalised alone.
// None: replicate(), where the graph keeps the module's own buffer, and not a replica's.
void two_forwards(nn::BufferPolicy policy, const std::vector<Device>& devices) {
  const size_t local = std::max<size_t>(devices.size(), 1);
  with_groups(2, seconds(60), [&](const Group& g) {
    Scaled net(policy);
    DdpOptions o;
    o.average = Average::sum;
    o.devices = devices;
    std::optional<DistributedDataParallel<Scaled>> ddp;
    if (devices.empty()) replicate(net, g, o);
    else ddp.emplace(net, g, o);
    const auto forward = [&](const Tensor& x, double by) {
      return ddp ? (*ddp)(x, by).sum() : net(x, by);
    };
    const int64_t n = 4;
    const auto part = [&](int rank, size_t replica, double start) {
      return rows(n, start + 10.0 * rank + 3.0 * static_cast<double>(replica));
    };
    const auto batch = [&](double start) {
      std::vector<Tensor> parts;
      for (size_t i = 0; i < local; ++i) parts.push_back(part(g->rank(), i, start));
      return cat(parts);
    };
    const Tensor users = net->scale;
    // Rank r raises it by r + 1, on all of its replicas.
    const Tensor first = forward(batch(0), g->rank() + 1.0);
    const Tensor second = forward(batch(5), 0.0);
    (first + second).backward();
    const double agreed = policy == nn::BufferPolicy::first  ? 2
                          : policy == nn::BufferPolicy::mean ? 2.5
                                                             : 3;
    EXPECT_EQ(net->scale[0].item<double>(), agreed);
    EXPECT_EQ(users[1].item<double>(), agreed);  // other holders of the buffer see its new values
    for (int64_t j = 0; j < 2; ++j) {
      double expected = 0;
      for (int r = 0; r < 2; ++r)
        for (size_t i = 0; i < local; ++i) {
          const double own = r + 2.0;
          expected += by_w(part(r, i, 0), {own, own})[static_cast<size_t>(j)];
          expected += by_w(part(r, i, 5), {agreed, agreed})[static_cast<size_t>(j)];
        }
      EXPECT_NEAR(net->w.grad()[j].item<double>(), expected, 1e-5 * std::abs(expected));
    }
  });
}

TEST(DdpBuffers, TwoForwardsBeforeOneBackward) {
  for (const auto policy :
       {nn::BufferPolicy::first, nn::BufferPolicy::mean, nn::BufferPolicy::max}) {
    SCOPED_TRACE(static_cast<int>(policy));
    two_forwards(policy, {"cpu:0"});
  }
}

TEST(DdpBuffers, TwoForwardsOfAReplicatedModule) {
  for (const auto policy :
       {nn::BufferPolicy::first, nn::BufferPolicy::mean, nn::BufferPolicy::max}) {
    SCOPED_TRACE(static_cast<int>(policy));
    two_forwards(policy, {});
  }
}

// The ranks' replicas follow the ranks' value, too, and their graphs keep theirs.
TEST(DdpBuffers, TwoForwardsOnTwoDevices) {
  for (const auto policy :
       {nn::BufferPolicy::first, nn::BufferPolicy::mean, nn::BufferPolicy::max}) {
    SCOPED_TRACE(static_cast<int>(policy));
    two_forwards(policy, {"cpu:0", "cpu:1"});
  }
}

// What the program itself writes between the forward and its backward is an error as ever.
TEST(DdpBuffers, WrittenByTheProgramBeforeItsBackward) {
  with_groups(2, seconds(60), [](const Group& g) {
    Scaled net;
    DistributedDataParallel<Scaled> ddp(net, g);
    const Tensor loss = ddp(rows(4, g->rank()), 0.0);
    {
      const NoGradGuard off;
      net->scale.add_(1);
    }
    EXPECT_ERROR_TEXT(loss.backward(), "modified by an inplace operation");
  });
}

// Two names of one buffer, and buffers that are parts of one memory, stay that.
struct CountImpl : nn::Cloneable<CountImpl> {
  CountImpl() { CountImpl::reset(); }
  void reset() override { n = register_buffer("n", zeros({1})); }
  Tensor n;
};
RAMET_MODULE(Count);

struct SharedBuffersImpl : nn::Cloneable<SharedBuffersImpl> {
  SharedBuffersImpl() { SharedBuffersImpl::reset(); }
  void reset() override {
    w = register_parameter("w", ones({1}));
    whole = register_buffer("whole", zeros({2}));
    part = register_buffer("part", whole.slice(0, 1, 2));
    a = register_buffer("a", zeros({1}));
    b = register_buffer("b", a);
    c = register_module("c", Count());
    d = register_module("d", c);
  }
  Tensor forward(const Tensor& x, double by) {
    if (by != 0) {
      const NoGradGuard off;
      whole.add_(by);
      a.add_(by);
      c->n.add_(by);
    }
    return (w * x).sum() + whole.sum() + part.sum() + a.sum() + b.sum() + c->n.sum() + d->n.sum();
  }
  Tensor w, whole, part, a, b;
  Count c{nullptr}, d{nullptr};
};
RAMET_MODULE(SharedBuffers);

TEST(DdpBuffers, OnesThatShareMemory) {
  with_groups(2, seconds(60), [](const Group& g) {
    SharedBuffers net;
    DistributedDataParallel<SharedBuffers> ddp(net, g);
    ddp(ones({1}), g->rank() + 1.0);
    const Tensor y = ddp(ones({1}), 0.0);
    EXPECT_EQ(y.item<double>(), 1 + 2 + 1 + 1 + 1 + 2);
    {
      const NoGradGuard off;
      net->whole.fill_(7);
      net->a.fill_(7);
      net->c->n.fill_(7);
    }
    EXPECT_EQ(net->part.item<double>(), 7);
    EXPECT_EQ(net->b.item<double>(), 7);
    EXPECT_EQ(ddp(ones({1}), 0.0).item<double>(), 1 + 14 + 7 + 7 + 7 + 14);
  });
}

}  // namespace
}  // namespace ramet::distributed
