// GPT-2 of 124M parameters: one step on a CPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "autograd/autocast.h"
#include "runtime/devices/generator.h"
#include "tools/training/jobs.h"

namespace ramet::training {
namespace {

TEST(Gpt2Of124M, TakesOneStep) {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string ids =
      std::string(base ? base : "/tmp") + "/ids_" + std::to_string(::getpid()) + ".bin";
  {
    std::ofstream file(ids, std::ios::binary);
    for (int i = 0; i < 3000; ++i) {
      const auto id = static_cast<uint16_t>(i * 7919 % 50257);
      file.write(reinterpret_cast<const char*>(&id), sizeof id);
    }
  }
  Options o;
  o.model = "gpt2";
  o.size = "124M";
  o.data = ids;
  o.length = 128;
  const std::unique_ptr<Job> job = make_job(o);
  ::unlink(ids.c_str());
  manual_seed(1);
  nn::Sequential model = job->make_model(0);
  int64_t parameters = 0;
  for (const Tensor& p : model->parameters()) parameters += p.numel();
  EXPECT_EQ(parameters, 124'439'808);
  const Device cpu(kCPU, 0);
  const std::unique_ptr<Replicas> replicas = make_replicas(model, {cpu}, "fixed");
  optim::AdamW optimizer(model->parameters(), job->optimizer(3e-4));
  const auto batch =
      job->data().batches(job->data().train_rows, job->data().train_targets).get_batch({0, 1});
  const data::Example<> example{batch.data, batch.target.to(kLong)};
  std::vector<double> losses;
  for (const bool autocast : {false, true}) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const AutocastGuard guard(kCPU, kBFloat16, autocast);
      loss = job->pass(0, *replicas, Processes(), example).loss;
    }
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  EXPECT_NEAR(losses[0], std::log(50257), 0.3);
  EXPECT_LT(losses[1], losses[0] - 0.5) << "the second step, in 16 bits, sees what was learned";
}

}  // namespace
}  // namespace ramet::training
