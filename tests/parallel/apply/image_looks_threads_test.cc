// A convolution's result may lie in memory in another order than row-major
// (autograd/graph/layout.h). The first access to it as rows changes that. Such an access is a read:
// other threads may use the tensor at the same time. What fails here fails under ThreadSanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/pooling.h"
#include "nn/module/sequential.h"
#include "parallel/move/comm.h"
#include "parallel/nodes/scatter_gather.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace parallel;

using Use = std::function<Tensor(const Tensor&)>;

Tensor image(Device device = kHost) {
  manual_seed(5);
  const Tensor y = conv2d(rand({2, 3, 7, 7}, device), rand({4, 3, 3, 3}, device), {}, 1, 1);
  EXPECT_TRUE(y->is(TensorImpl::kInternalLayout));
  return y;
}

// use(image), alone and while another thread reads it as rows, has the values of use(the same
// rows).
void expect_same(const char* name, const Use& use, Device device = kHost) {
  SCOPED_TRACE(name);
  const Tensor rows = image(device);
  autograd::settle(rows);
  const Values want = values(use(rows).contiguous());
  for (int round = 0; round < 4; ++round) {
    const Tensor y = image(device);
    Tensor got, looks[2];
    {
      std::jthread first([&] { looks[0] = y.view({-1}); }), second([&] {
        if (round > 1) looks[1] = y.select(1, 0);
      });
      got = use(y);
    }
    EXPECT_EQ(values(looks[0]), values(rows));
    const Values have = values(got.contiguous());
    ASSERT_EQ(have.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(have[i], want[i], 1e-4) << i;
  }
}

TEST(ImageLooks, DuringOperations) {
  const NoGradGuard off;
  const Tensor w = rand({2, 4, 3, 3}), line = rand({7}), other = image();
  nn::Sequential net(nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(36, 2));
  const std::vector<std::pair<const char*, Use>> uses = {
      {"relu", [](const Tensor& y) { return y.relu(); }},
      {"broadcast", [&](const Tensor& y) { return y * line + other; }},
      {"in place into another", [&](const Tensor& y) { return other.clone().add_(y); }},
      {"conv2d", [&](const Tensor& y) { return conv2d(y, w); }},
      {"max_pool2d", [](const Tensor& y) { return max_pool2d(y, 2); }},
      {"avg_pool2d", [](const Tensor& y) { return avg_pool2d(y, 2); }},
      {"batch_norm",
       [](const Tensor& y) { return batch_norm(y, {}, {}, {}, {}, true, 0, 1e-5, false); }},
      {"sum", [](const Tensor& y) { return y.sum({1}); }},
      {"softmax", [](const Tensor& y) { return y.softmax(1); }},
      {"cat",
       [&](const Tensor& y) {
         return cat({y, other}, 1);
       }},
      {"clone", [](const Tensor& y) { return y.clone(); }},
      {"to", [](const Tensor& y) { return y.to(kDouble); }},
      {"copy_", [](const Tensor& y) { return zeros_like(y).copy_(y); }},
      {"flatten", [](const Tensor& y) { return y.flatten(1); }},
      {"index_select",
       [](const Tensor& y) {
         return y.index_select(1, tensor({2, 0}));
       }},
      {"net", [&](const Tensor& y) { return net(y); }},
      {"print",
       [](const Tensor& y) {
         std::ostringstream out;
         out << y;
         return full({1}, static_cast<int64_t>(out.str().size()));
       }},
  };
  for (const auto& [name, use] : uses) expect_same(name, use);
}

// What a backward saved, and gradients that lie so themselves.
TEST(ImageLooks, DuringBackward) {
  const Tensor w = rand({2, 4, 3, 3});
  expect_same("conv2d", [&](const Tensor& y) {
    const Tensor x = y.clone().requires_grad_(), kernel = w.clone().requires_grad_();
    conv2d(x * y, kernel).backward(ones({2, 2, 5, 5}));
    return cat({x.grad().flatten(), kernel.grad().flatten()});
  });
  expect_same("saved", [&](const Tensor& y) {
    const Tensor x = ones({2, 4, 7, 7}, requires_grad());
    const Tensor product = x * y;  // saves both
    max_pool2d(product * product, 2).backward(ones({2, 4, 3, 3}));
    return x.grad();
  });
  expect_same("as a gradient", [](const Tensor& y) {
    const Tensor x = ones({2, 4, 7, 7}, requires_grad());
    (x * 3).backward(y);
    return x.grad();
  });
}

TEST(ImageLooks, DuringMovements) {
  const NoGradGuard off;
  const std::vector<Device> two = {d(0), d(1)};
  const Device from = d(0);
  const auto all = [](const std::vector<Tensor>& parts) {
    std::vector<Tensor> flat;
    for (const Tensor& t : parts) flat.push_back(t.to(kHost).flatten());
    return cat(flat);
  };
  const auto copies = [](const Tensor& like) {
    std::vector<Tensor> out;
    for (Device device : many(2)) out.push_back(zeros(like.sizes(), device));
    return out;
  };
  const std::vector<std::pair<const char*, Use>> uses = {
      {"scatter", [&](const Tensor& y) { return all(comm::scatter(y, two)); }},
      {"scatter along channels",
       [&](const Tensor& y) { return all(comm::scatter(y, two, std::nullopt, 1)); }},
      {"broadcast", [&](const Tensor& y) { return all(comm::broadcast(y, two)); }},
      {"broadcast_out",
       [&](const Tensor& y) {
         std::vector<Tensor> out = copies(y);
         return all(comm::broadcast_out(y, out));
       }},
      {"broadcast_coalesced",
       [&](const Tensor& y) {
         return all(comm::broadcast_coalesced({y, y}, two)[1]);
       }},
      {"reduce_add",
       [&](const Tensor& y) {
         return comm::reduce_add({y, y.to(d(1))}, kHost);
       }},
      {"gather",
       [&](const Tensor& y) {
         return comm::gather({y, y.to(d(1))}, 1, kHost);
       }},
      {"to", [&](const Tensor& y) { return y.to(kHost); }},
  };
  for (const auto& [name, use] : uses) expect_same(name, use, from);
}

// However it lies there, too.
TEST(ImageLooks, WhatWasMovedShowsRows) {
  const NoGradGuard off;
  const std::vector<Device> two = {d(0), d(1)};
  std::vector<Tensor> moved = comm::broadcast(image(d(0)), two);
  for (const Tensor& part : comm::scatter(image(d(0)), two)) moved.push_back(part);
  moved.push_back(comm::reduce_add({image(d(0)), image(d(1))}, d(1)));
  moved.push_back(comm::gather({image(d(0)), image(d(1))}, 0, d(1)));
  for (const Tensor& t : moved) {
    EXPECT_TRUE(t.is_contiguous());
    EXPECT_EQ(t.view({-1}).numel(), t.numel());
  }
}

}  // namespace
}  // namespace ramet
