// Averages of weights and batch norms' statistics, against numbers from PyTorch 2.15.
#include <sstream>

#include "nn/optim/averaged_model.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/data/example.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/module/sequential.h"
#include "nn/serialize/save.h"
#include "tests/nn/support.h"

namespace ramet::optim {
namespace {

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    fc = register_module("fc", nn::Linear(3, 2));
    bn = register_module("bn", nn::BatchNorm1d(2));
    to(kDouble);
  }
  Tensor forward(const Tensor& x) { return bn(fc(x)); }
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
};
RAMET_MODULE(Net);

void fill(const Net& net, int k) {
  const NoGradGuard off;
  net->fc->weight.copy_(sines(6, .7, k).view({2, 3}));
  net->fc->bias.copy_(sines(2, .3, k));
  net->bn->weight.copy_(sines(2, .4, k) + 2);
  net->bn->bias.copy_(sines(2, .9, k));
  net->bn->running_mean.copy_(sines(2, 1.1, k));
  net->bn->running_var.copy_(sines(2, 1.3, k) + 3);
  net->bn->num_batches_tracked.fill_(3 * k + 1);
}
std::vector<double> all_of(const nn::Module& module) {
  std::vector<double> all;
  for (const auto& list : {module.parameters(), module.buffers()})
    for (const Tensor& t : list)
      for (double v : values(t)) all.push_back(v);
  return all;
}
AveragedModel<Net> averaged(AveragedModelOptions options = {}) {
  Net net;
  AveragedModel<Net> average(net, std::move(options));
  for (int k = 0; k < 4; ++k) {
    fill(net, k);
    average->update_parameters(net);
  }
  EXPECT_EQ(average->n_averaged.item<int64_t>(), 4);
  return average;
}
// 16-bit averages: rounded from those of a float32 model that has the same values.
TEST(AveragedModel, OfSixteenBits) {
  const auto train = [](ScalarType t, bool through_a_file) {
    Net net;
    net->to(t);
    AveragedModelOptions options;
    options.multi_avg_fn(get_ema_multi_avg_fn(0.999));
    auto average = std::make_shared<AveragedModel<Net>>(net, options);
    for (int k = 0; k < 12; ++k) {
      fill(net, k);
      for (const Tensor& p : net->parameters()) p.detach().copy_(p.detach().to(kBFloat16));
      (*average)->update_parameters(net);
      if (!through_a_file || k != 6) continue;
      std::stringstream file;
      save(*average, file);
      average = std::make_shared<AveragedModel<Net>>(net, options);
      load(*average, file);
      const auto copy = (*average)->clone();
      average = std::make_shared<AveragedModel<Net>>(
          std::dynamic_pointer_cast<AveragedModel<Net>::Impl>(copy));
    }
    return (*average)->module->parameters();
  };
  const std::vector<Tensor> wide = train(kFloat, false);
  for (const bool through_a_file : {false, true}) {
    const std::vector<Tensor> narrow = train(kBFloat16, through_a_file);
    for (size_t i = 0; i < wide.size(); ++i)
      EXPECT_TRUE(narrow[i].equal(wide[i].to(kBFloat16))) << i;
  }
}

void expect_averages(AveragedModelOptions options, const std::vector<double>& expected) {
  expect_values(doubles(all_of(*averaged(std::move(options))->module)), expected);
}

const std::vector<double> kMeans{0.472972104923361,  0.383356559253874,  0.113442433655816,
                                 -0.209825441077494, -0.434409132259103, -0.454683420709323,
                                 0.472972104923361,  0.461759477528001,  2.47297210492336,
                                 2.44869753770536,   0.472972104923361,  0.320277541836227};
const std::vector<double> kEmas{0.324105126783393,   0.358906893089999,  0.224909139501477,
                                -0.0148668966968348, -0.247650799076957, -0.363960661000707,
                                0.324105126783393,   0.360556260756868,  2.32410512678339,
                                2.36562880228772,    0.324105126783393,  0.336457199261765};
const std::vector<double> kLastBuffers{0.141120008059867, -0.81827711106441, 3.14112000805987,
                                       2.08383406325055, 10};
std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(AveragedModel, TheMean) {
  expect_averages({}, joined(kMeans, kLastBuffers));
  expect_averages(AveragedModelOptions().multi_avg_fn(get_swa_multi_avg_fn()),
                  joined(kMeans, kLastBuffers));
  expect_averages(
      AveragedModelOptions().avg_fn(get_swa_avg_fn()).use_buffers(true),
      joined(kMeans, {0.472972104923361, 0.244430069519797, 3.47297210492336, 3.1588379416753, 4}));
}
TEST(AveragedModel, Exponential) {
  const std::vector<double> buffers{0.324105126783393, 0.300594018651055, 3.32410512678339,
                                    3.25274710309601, 4};
  expect_averages(AveragedModelOptions().multi_avg_fn(get_ema_multi_avg_fn(.75)),
                  joined(kEmas, kLastBuffers));
  expect_averages(AveragedModelOptions().multi_avg_fn(get_ema_multi_avg_fn(.75)).use_buffers(true),
                  joined(kEmas, buffers));
  expect_averages(AveragedModelOptions().avg_fn(get_ema_avg_fn(.75)).use_buffers(true),
                  joined(kEmas, buffers));
}
// A function of one's own sees tensors of one dtype at a time.
TEST(AveragedModel, AFunctionOfOnesOwn) {
  Net net;
  std::vector<size_t> seen;
  AveragedModel<Net> largest(net, AveragedModelOptions().use_buffers(true).multi_avg_fn(
                                      [&](const auto& averaged, const auto& current, int64_t n) {
                                        seen.push_back(averaged.size());
                                        seen.push_back(static_cast<size_t>(n));
                                        for (size_t i = 0; i < averaged.size(); ++i)
                                          averaged[i].copy_(maximum(averaged[i], current[i]));
                                      }));
  fill(net, 1), largest->update_parameters(net);
  const std::vector<double> first = all_of(*net);
  fill(net, 2), largest->update_parameters(*net);
  EXPECT_EQ(seen, (std::vector<size_t>{6, 1, 1, 1}));
  std::vector<double> second = all_of(*net);
  for (size_t i = 0; i < first.size(); ++i) second[i] = std::max(second[i], first[i]);
  EXPECT_EQ(all_of(*largest->module), second);
}
TEST(AveragedModel, CallsPrintsAndSaves) {
  AveragedModel<Net> average = averaged();
  average->eval();
  EXPECT_FALSE(average->module->bn->is_training());
  const Tensor x = sines(12).view({4, 3}), y = average(x);
  EXPECT_TRUE(y.equal(average->module->forward(x)));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(text_of(average).substr(0, 39), "ramet::optim::AveragedModel(\n  (module)");
  EXPECT_EQ(average->named_parameters().keys()[0], "module.fc.weight");
  EXPECT_EQ(average->named_buffers().keys()[0], "n_averaged");

  std::stringstream file;
  save(average, file);
  AveragedModel<Net> loaded{Net()};
  load(loaded, file);
  EXPECT_EQ(all_of(*loaded), all_of(*average));
  EXPECT_EQ(loaded->n_averaged.item<int64_t>(), 4);
  const auto copy = std::dynamic_pointer_cast<AveragedModel<Net>::Impl>(average->clone());
  EXPECT_EQ(all_of(*copy), all_of(*average));
  EXPECT_FALSE(copy->is_training());
  // The copies go on independently.
  Net net;
  fill(net, 9);
  copy->update_parameters(net), loaded->update_parameters(net);
  EXPECT_EQ(all_of(*copy), all_of(*loaded));
  EXPECT_NE(all_of(*copy), all_of(*average));

  nn::Sequential line(nn::Linear(3, 1));
  AveragedModel<nn::Sequential> plain(line, AveragedModelOptions().device(Device("cpu:1")));
  plain->update_parameters(line);
  EXPECT_EQ(plain->module->parameters()[0].device(), Device("cpu:1"));
  EXPECT_EQ(values(plain(ones({1, 3}).to(Device("cpu:1")))), values(line->forward(ones({1, 3}))));
}
TEST(AveragedModel, Refusals) {
  Net net;
  EXPECT_ERROR_TEXT(
      AveragedModel<Net>(
          net,
          AveragedModelOptions().avg_fn(get_swa_avg_fn()).multi_avg_fn(get_swa_multi_avg_fn())),
      "[AveragedModel] Only one of avg_fn and multi_avg_fn should be provided");
  EXPECT_ERROR_TEXT(get_ema_avg_fn(1.5), "[AveragedModel] Invalid decay value 1.5 provided.");
  EXPECT_ERROR_TEXT(get_ema_multi_avg_fn(NAN), "Please provide a value in [0,1] range.");
  AveragedModel<Net> average(net);
  const std::vector<double> before = all_of(*average);
  nn::Linear other(3, 2);
  EXPECT_ERROR_TEXT(average->update_parameters(other),
                    "[AveragedModel] the model's parameters: got 2, expected 4");
  Net wider;
  wider->fc->weight.set_data(zeros({3, 3}, kDouble));
  EXPECT_ERROR_TEXT(average->update_parameters(wider),
                    "[AveragedModel] the model's parameters number 0: got ");
  EXPECT_EQ(all_of(*average), before);
}

std::vector<Tensor> batches() {
  std::vector<Tensor> all;
  for (int k = 0; k < 3; ++k) all.push_back(sines(12, .7, k).view({4, 3}) * (k + 1));
  return all;
}
TEST(UpdateBn, AsInPyTorch) {
  const std::vector<double> expected{0.78739855863674, 0.184197788770235, 2.22751216568796,
                                     2.50235533701928, 3};
  const auto expect = [&](const auto& loader) {
    AveragedModel<Net> average = averaged();
    average->eval();
    average->module->fc->train();
    update_bn(loader, average);
    expect_values(doubles(all_of(*average->module)), joined(kMeans, expected));
    EXPECT_EQ(average->module->bn->options.momentum(), 0.1);
    // each module is in the mode in which it was
    EXPECT_FALSE(average->is_training() || average->module->bn->is_training());
    EXPECT_TRUE(average->module->fc->is_training());
  };
  expect(batches());
  std::vector<data::Example<>> examples;
  std::vector<std::vector<Tensor>> lists;
  std::vector<std::pair<Tensor, int>> pairs;
  std::vector<std::tuple<Tensor, int, int>> tuples;
  for (const Tensor& x : batches()) {
    examples.emplace_back(x, ones({4}));
    lists.push_back({x, ones({4})});
    pairs.emplace_back(x, 1);
    tuples.emplace_back(x, 1, 2);
  }
  expect(examples), expect(lists), expect(pairs), expect(tuples);
}
TEST(UpdateBn, WhereItFailsAndWithoutBatchNorms) {
  AveragedModel<Net> average = averaged();
  average->eval();
  EXPECT_ERROR_TEXT(update_bn(std::vector<Tensor>{zeros({4, 5}, kDouble)}, average), "[linear]");
  EXPECT_EQ(average->module->bn->options.momentum(), 0.1);
  EXPECT_FALSE(average->module->bn->is_training());
  nn::Linear none(5, 2);  // is not even called
  update_bn(std::vector<Tensor>{zeros({4, 3})}, none);
  const Device there("cpu:1");
  average->to(there);
  update_bn(batches(), average, there);
  EXPECT_EQ(average->module->bn->num_batches_tracked.item<int64_t>(), 3);
}

}  // namespace
}  // namespace ramet::optim
