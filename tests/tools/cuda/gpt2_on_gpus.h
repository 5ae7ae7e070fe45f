// GPT-2 in 16 bits on GPUs, against a reference in float64 on a CPU.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nn/data.h"
#include "nn/optim/lr_scheduler.h"
#include "runtime/devices/generator.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/train_support.h"
#include "tools/training/jobs.h"

namespace ramet::training {

class Gpt2OnGpus : public TrainTest {
 protected:
  /// `steps` of the tiny size: two layers, 64 wide, two heads, 512 ids, pieces of 64 of them. Each
  /// loss is within 2 % of the reference's. The lists of devices give the digest of one GPU.
  void expect_trained(int64_t steps, const std::string& autocast,
                      const std::vector<const char*>& lists) const {
    Options o = options("one");
    o.model = "gpt2";
    o.data = folder_ + "/data";
    o.epochs = 1;
    o.batch = 4;
    o.limit = o.batch * steps;
    o.lr = 3e-3;
    o.reduce = "tree:4";
    o.autocast = autocast;
    write_ids(o.data + "/train.bin", 64 * o.limit + 1);
    write_ids(o.data + "/val.bin", 65);
    const testing::Gpus four(testing::gpu_settings(4));
    o.devices = "cuda:0";
    printed(o);
    const std::vector<double> got = losses("one"), expected = reference(o);
    ASSERT_EQ(got.size(), static_cast<size_t>(steps));
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 0.02 * expected[i]) << "step " << i + 1;
    EXPECT_NEAR(expected[0], std::log(512), 0.1);
    EXPECT_LT(expected.back(), expected[0] - 0.01 * static_cast<double>(steps));
    o.out = folder_ + "/many";
    for (const char* devices : lists) {
      o.devices = devices;
      printed(o);
      EXPECT_EQ(digest("many"), digest("one")) << devices;
    }
  }

 private:
  // An id says of most places what follows.
  static void write_ids(const std::string& path, int64_t count) {
    std::ofstream file(path, std::ios::binary);
    uint32_t random = 5, id = 0;
    for (int64_t i = 0; i < count; ++i) {
      random = random * 1664525 + 1013904223;
      id = random >> 29 == 0 ? (random >> 8) % 512 : (id * 5 + 7) % 512;
      const auto written = static_cast<uint16_t>(id);
      file.write(reinterpret_cast<const char*>(&written), sizeof written);
    }
  }
  std::vector<double> losses(const std::string& run) const {
    std::istringstream lines(read_file(out("metrics.jsonl", run)));
    std::vector<double> all;
    for (std::string line; std::getline(lines, line);)
      if (auto j = nlohmann::json::parse(line); j.contains("loss")) all.push_back(j.at("loss"));
    return all;
  }
  // The same weights and batches, by a loop of its own.
  static std::vector<double> reference(const Options& o) {
    const Device cpu(kCPU, 0);
    const auto job = make_job(o);
    manual_seed(static_cast<uint64_t>(o.seed));
    nn::Sequential model = job->make_model(0);
    model->to(kDouble);
    optim::AdamW optimizer(model->parameters(), job->optimizer(o.lr));
    const Tensor& rows = job->data().train_rows;
    const int64_t steps = rows.size(0) / o.batch;
    optim::CosineAnnealingLR schedule(optimizer, static_cast<unsigned>(steps));
    auto loader = data::make_data_loader(job->data().batches(rows, job->data().train_targets),
                                         data::samplers::RandomSampler(rows.size(0)),
                                         data::DataLoaderOptions(static_cast<size_t>(o.batch)));
    const auto alone = make_replicas(model, {cpu}, "fixed");
    std::vector<double> all;
    for (auto& batch : *loader) {
      batch.target = batch.target.to(kLong);
      optimizer.zero_grad();
      const Tensor loss = job->pass(0, *alone, Processes(), batch).loss;
      loss.backward();
      optimizer.step();
      schedule.step();
      all.push_back(loss.item<double>());
    }
    return all;
  }
};

}  // namespace ramet::training
