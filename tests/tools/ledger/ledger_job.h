// A small run with a ledger, and what may go wrong in it. Each Job is as a process of its own.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "ramet.h"
#include "tools/ledger/ledger.h"

namespace ramet::ledger {

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// While it lives the environment has this variable.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

struct Faults {
  /// Called in each step, with its number: before the batch is drawn, after the backward pass,
  /// after the optimizer's step.
  std::function<void(int64_t)> before = {}, gradients = {}, after = {};
};

struct Job {
  nn::Sequential net{nn::Linear(6, 8), nn::BatchNorm1d(8), nn::Dropout(0.25), nn::Tanh(),
                     nn::Linear(8, 1)};
  nn::parallel::DataParallel<nn::Sequential> replicas;
  optim::Adam adam{net->parameters(), optim::AdamOptions(0.01)};
  int64_t step = 0;
  Checkpoint parts;
  Ledger ledger;

  static std::vector<Device> devices(int n) {
    std::vector<Device> all;
    for (int i = 0; i < n; ++i) all.emplace_back(kCPU, static_cast<DeviceIndex>(i));
    return all;
  }
  static nn::parallel::DataParallelOptions parallel(int n) {
    nn::parallel::DataParallelOptions o(devices(n));
    o.order = parallel::ReduceOrder::tree(4);
    return o;
  }
  static LedgerOptions options(const std::string& path) {
    LedgerOptions o{path};
    o.checkpoint_every = 5;
    o.order = "tree:4";
    return o;
  }

  explicit Job(const std::string& path, int devices = 1) : Job(options(path), devices) {}
  Job(const LedgerOptions& o, int devices) : replicas(net, parallel(devices)), ledger(parts, o) {
    parts.add("net", *net).add("adam", adam).add("step", step);
    ledger.watch(*net).watch(adam);
  }

  void one_step(const Faults& faults = {}) {
    ++step;
    if (faults.before) faults.before(step);
    const Tensor x = randn({16, 6});
    ledger.batch({x});
    adam.zero_grad();
    mse_loss(replicas(x), x.sum(1, true)).backward();
    if (faults.gradients) faults.gradients(step);
    ledger.gradients();
    adam.step();
    if (faults.after) faults.after(step);
  }
  int train(int64_t steps, const Faults& faults = {}, int64_t done = 0) {
    return ledger.run(
        steps, [&] { one_step(faults); }, done);
  }
};

/// One bit of an element's float, the lowest.
inline void flip(const Tensor& t, int64_t element = 0) {
  const NoGradGuard off;
  auto* bits = static_cast<uint32_t*>(t.data_ptr());
  bits[element] ^= 1;
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    const char* const base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/ledger_" + std::to_string(::getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    shell("rm -rf '" + folder_ + "' && mkdir -p '" + folder_ + "'");
  }
  ~LedgerTest() override { shell("rm -rf '" + folder_ + "'"); }
  static void shell(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  std::string path() const { return folder_ + "/job.ledger"; }
  /// 12 steps with checkpoints 0, 5 and 10.
  void record(int devices = 1) {
    manual_seed(3);
    Job job(path(), devices);
    EXPECT_EQ(job.train(12), 0);
  }
  /// What verifying that step finds, of a job in which `plant` makes faults.
  Verdict verify(int64_t step, const std::function<void(Job&, Faults&)>& plant = {},
                 int devices = 1) {
    const Variable asked("RAMET_LEDGER_VERIFY", std::to_string(step) + ":" + path());
    manual_seed(99);  // another process would start anywhere
    Job job("", devices);
    Faults faults;
    if (plant) plant(job, faults);
    job.ledger.begin();
    while (!job.ledger.has_ended()) {
      job.one_step(faults);
      job.ledger.end_step();
    }
    return job.ledger.verdict();
  }
  /// The first words of what differs.
  std::string found(int64_t step, const std::function<void(Job&, Faults&)>& plant) {
    const Verdict verdict = verify(step, plant);
    EXPECT_FALSE(verdict.same);
    return verdict.text.substr(0, verdict.text.find(" differs"));
  }

  std::string folder_;
};

}  // namespace ramet::ledger
