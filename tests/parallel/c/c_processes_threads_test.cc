// Ranks in C, compared with the same ranks in C++. They run as threads of this process, with
// errors, and with an address for ranks that MPI starts.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "nn/optim/sgd.h"
#include "parallel/c/c_processes.h"
#include "parallel/distributed/ddp/replicate.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

constexpr int kRanks = 2, kSteps = 4, kRows = 6;
const char* const kNet =
    R"({"layers": [{"type": "Linear", "in_features": 3, "out_features": 5}, {"type": "BatchNorm1d", "num_features": 5},
        {"type": "Tanh"}, {"type": "Linear", "in_features": 5, "out_features": 1}]})";

std::string last() { return ramet_last_error(); }

void as_ranks(const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) threads.emplace_back([&f, r] { f(r); });
  for (std::thread& t : threads) t.join();
}

// Rank r's rows.
std::vector<float> rows_of(int rank, int columns) {
  std::vector<float> made;
  for (int i = 0; i < kRows * columns; ++i)
    made.push_back(static_cast<float>((i * 37 + rank * 11 + columns) % 23) / 11 - 1);
  return made;
}

TEST(CProcesses, TrainWithTheBitsOfCxx) {
  double got[kRanks][kSteps] = {}, expected[kRanks][kSteps] = {};
  // Made before the threads: they draw from one generator.
  manual_seed(5);
  ramet_module* nets[kRanks];
  for (ramet_module*& net : nets)
    ASSERT_NE(net = ramet_module_new(kNet, nullptr), nullptr) << last();
  as_ranks([&](int r) {
    std::vector<float> points = rows_of(r, 3), values = rows_of(r, 1);
    const int64_t in[2] = {kRows, 3}, out[2] = {kRows, 1};
    ramet_group* group = ramet_group_new("inproc://c_bits", r, kRanks, 60);
    ASSERT_NE(group, nullptr) << last();
    ASSERT_EQ(ramet_module_replicate(nets[r], group), RAMET_OK) << last();
    ramet_optimizer* sgd = ramet_optimizer_new(nets[r], "SGD", R"({"lr": 0.1, "momentum": 0.9})");
    ramet_tensor *x = ramet_tensor_from_memory(points.data(), RAMET_FLOAT32, 2, in, nullptr),
                 *target = ramet_tensor_from_memory(values.data(), RAMET_FLOAT32, 2, out, nullptr);
    for (double& value : got[r]) {
      ramet_tensor *y = ramet_module_forward(nets[r], x),
                   *loss = ramet_mse_loss(y, target, RAMET_MEAN);
      EXPECT_EQ(ramet_optimizer_zero_grad(sgd, 1), RAMET_OK) << last();
      EXPECT_EQ(ramet_tensor_item(loss, &value), RAMET_OK) << last();
      EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
      EXPECT_EQ(ramet_optimizer_step(sgd), RAMET_OK) << last();
      ramet_tensor_free(y);
      ramet_tensor_free(loss);
    }
    // Gradients of one rank, then both together.
    int rank = -1, size = -1;
    EXPECT_EQ(ramet_group_rank(group, &rank), RAMET_OK);
    EXPECT_EQ(ramet_group_size(group, &size), RAMET_OK);
    EXPECT_EQ(rank, r);
    EXPECT_EQ(size, kRanks);
    EXPECT_EQ(ramet_group_barrier(group), RAMET_OK) << last();
    for (ramet_tensor* t : {x, target}) ramet_tensor_free(t);
    ramet_optimizer_free(sgd);
    EXPECT_EQ(ramet_group_free(group), RAMET_OK);
    EXPECT_EQ(ramet_module_free(nets[r]), RAMET_OK);
  });

  manual_seed(5);
  nn::Sequential twins[kRanks];
  for (nn::Sequential& net : twins) {
    net->push_back(nn::Linear(3, 5));
    net->push_back(nn::BatchNorm1d(5));
    net->push_back(nn::Tanh());
    net->push_back(nn::Linear(5, 1));
  }
  as_ranks([&](int r) {
    distributed::RendezvousOptions how;
    how.rank = r, how.world_size = kRanks;
    const auto group = distributed::init_process_group("inproc://cxx_bits", {}, how);
    distributed::replicate(twins[r], group);
    optim::SGD sgd(twins[r]->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    std::vector<float> points = rows_of(r, 3), values = rows_of(r, 1);
    const Tensor x = from_blob(points.data(), {kRows, 3}),
                 target = from_blob(values.data(), {kRows, 1});
    for (double& value : expected[r]) {
      const Tensor loss = mse_loss(twins[r](x), target);
      sgd.zero_grad();
      value = loss.item<double>();
      loss.backward();
      sgd.step();
    }
    group->barrier().wait();
  });
  EXPECT_EQ(std::memcmp(got, expected, sizeof(got)), 0)
      << got[0][kSteps - 1] << " and " << expected[0][kSteps - 1];
  EXPECT_LT(got[0][kSteps - 1] + got[1][kSteps - 1], got[0][0] + got[1][0]);
}

TEST(CProcesses, Collectives) {
  as_ranks([&](int r) {
    ramet_group* group = ramet_group_new("inproc://c_collectives", r, kRanks, 60);
    ASSERT_NE(group, nullptr) << last();
    double values[2] = {1.0 + r, 10};
    const int64_t two[1] = {2};
    ramet_tensor* t = ramet_tensor_from_memory(values, RAMET_FLOAT64, 1, two, nullptr);
    EXPECT_EQ(ramet_group_all_reduce(group, t, RAMET_REDUCE_SUM), RAMET_OK) << last();
    EXPECT_EQ(values[0], 3);
    EXPECT_EQ(values[1], 20);
    values[0] = r, values[1] = -r;
    EXPECT_EQ(ramet_group_all_reduce(group, t, RAMET_REDUCE_AVERAGE), RAMET_OK) << last();
    EXPECT_EQ(values[0], 0.5);
    values[0] = r;
    EXPECT_EQ(ramet_group_all_reduce(group, t, RAMET_REDUCE_MAX), RAMET_OK) << last();
    EXPECT_EQ(values[0], 1);
    values[0] = 7 + r;
    EXPECT_EQ(ramet_group_broadcast(group, t, 1), RAMET_OK) << last();
    EXPECT_EQ(values[0], 8);
    // Refused on this rank, before anything is sent.
    EXPECT_EQ(ramet_group_all_reduce(group, t, 9), RAMET_INVALID);
    expect_part(last(), "op: expected RAMET_REDUCE_SUM to RAMET_REDUCE_MAX, got 9");
    EXPECT_EQ(ramet_group_broadcast(group, t, kRanks), RAMET_INVALID);
    EXPECT_EQ(ramet_group_all_reduce(group, nullptr, RAMET_REDUCE_SUM), RAMET_INVALID);
    // Ranks that disagree: an error on both, and no hang.
    const int64_t one[1] = {1};
    ramet_tensor* other = ramet_tensor_zeros(RAMET_FLOAT64, 1, r ? one : two);
    EXPECT_NE(ramet_group_all_reduce(group, other, RAMET_REDUCE_SUM), RAMET_OK);
    EXPECT_NE(last(), "");
    ramet_tensor_free(t);
    ramet_tensor_free(other);
    ramet_group_free(group);
  });
}

TEST(CProcesses, GradientsOfSeveralBackwards) {
  double slopes[kRanks];
  ramet_module* nets[kRanks];
  for (ramet_module*& net : nets)
    ASSERT_NE(
        net = ramet_module_new(
            R"({"type": "Linear", "in_features": 1, "out_features": 1, "bias": false, "dtype": "float64"})",
            nullptr),
        nullptr);
  as_ranks([&](int r) {
    ramet_group* group = ramet_group_new("inproc://c_sync", r, kRanks, 60);
    ASSERT_EQ(ramet_module_replicate(nets[r], group), RAMET_OK) << last();
    EXPECT_EQ(ramet_module_replicate(nets[r], group), RAMET_INVALID);
    for (int i = 0; i < 2; ++i) {  // d(w x)/dw = x: 1 and 2 of rank 0, 10 and 20 of rank 1
      EXPECT_EQ(ramet_module_set_gradient_sync(nets[r], i), RAMET_OK) << last();
      double value = (i + 1) * (r ? 10 : 1);
      const int64_t sizes[2] = {1, 1};
      ramet_tensor *x = ramet_tensor_from_copy(&value, RAMET_FLOAT64, 2, sizes, nullptr),
                   *y = ramet_module_forward(nets[r], x), *loss = ramet_tensor_sum(y);
      EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
      for (ramet_tensor* t : {x, y, loss}) ramet_tensor_free(t);
    }
    ramet_tensor *weight = ramet_module_parameter(nets[r], "weight"),
                 *gradient = ramet_tensor_grad(weight);
    EXPECT_EQ(ramet_tensor_item(gradient, &slopes[r]), RAMET_OK) << last();
    ramet_tensor_free(weight);
    ramet_tensor_free(gradient);
    EXPECT_EQ(ramet_group_barrier(group), RAMET_OK) << last();
    ramet_group_free(group);
    ramet_module_free(nets[r]);
  });
  for (const double slope : slopes) EXPECT_EQ(slope, (1 + 2 + 10 + 20) / 2.0);
}

TEST(CProcesses, Errors) {
  EXPECT_EQ(ramet_group_new(nullptr, 0, 1, 60), nullptr);
  expect_part(last(), "address: expected a text, got NULL");
  EXPECT_EQ(ramet_group_new("inproc://x", 2, 2, 60), nullptr);
  expect_part(last(), "rank: expected 0 to 1, got 2");
  EXPECT_EQ(ramet_group_new("inproc://x", 0, 0, 60), nullptr);
  EXPECT_EQ(ramet_group_new("inproc://x", 0, 1, 0), nullptr);
  expect_part(last(), "timeout: expected seconds, got 0");
  EXPECT_EQ(ramet_group_new("x", 0, 1, 1), nullptr);
  expect_part(last(), "address: got \"x\"");
  EXPECT_EQ(ramet_group_new("inproc://nobody_else", 0, 2, 0.05), nullptr);  // the deadline
  EXPECT_NE(last(), "");
  EXPECT_EQ(ramet_group_barrier(nullptr), RAMET_INVALID);
  expect_part(last(), "group: expected a group, got NULL");
  char address[256], little[4];
  EXPECT_EQ(ramet_group_address(nullptr, nullptr, 256), RAMET_INVALID);
  EXPECT_EQ(ramet_group_address(nullptr, little, sizeof(little)), RAMET_INVALID);
  expect_part(last(), "capacity: expected ");
  ASSERT_EQ(ramet_group_address("127.0.0.1", address, sizeof(address)), RAMET_OK) << last();
  expect_part(address, "tcp://127.0.0.1:");
  // A group of one over Gloo, at that address.
  ramet_group* group = ramet_group_new(address, 0, 1, 60);
  ASSERT_NE(group, nullptr) << last();
  ramet_module* net = ramet_module_new(R"({"type": "ReLU"})", nullptr);
  EXPECT_EQ(ramet_module_set_gradient_sync(net, 0), RAMET_INVALID);  // it is not replicated
  EXPECT_EQ(ramet_tensor_free(reinterpret_cast<ramet_tensor*>(group)), RAMET_INVALID);
  expect_part(last(), "expected a tensor, got a group");
  EXPECT_EQ(ramet_group_abort(group, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_group_abort(group, "the reactor is off"), RAMET_OK) << last();
  EXPECT_NE(ramet_group_barrier(group), RAMET_OK);
  expect_part(last(), "the reactor is off");
  ramet_module_free(net);
  ramet_group_free(group);
  EXPECT_EQ(ramet_group_free(group), RAMET_INVALID);
}

}  // namespace
}  // namespace ramet
