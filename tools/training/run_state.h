// The parts of a run, for run.cc, which trains, and run_reports.cc, which prints and writes the
// results.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/data.h"
#include "nn/module/checkpoint.h"
#include "nn/optim/adam.h"
#include "nn/optim/grad_scaler.h"
#include "nn/optim/lr_scheduler.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "runtime/observe/chrome_trace.h"
#include "tools/ledger/ledger.h"
#include "tools/training/explore.h"
#include "tools/training/history.h"
#include "tools/training/interrupt.h"
#include "tools/training/jobs.h"
#include "tools/training/processes.h"
#include "tools/training/progress.h"
#include "tools/training/replicas.h"

namespace ramet::training {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

/// The generators that a run draws from, without the name of a device, so that the run may go on
/// with another one. Weights and order come from the host's, dropout from that of the leading
/// device. On CPU devices the two are one.
struct LeadingGenerators {
  Device device;
  std::vector<int64_t> loaded = {};
  std::vector<Device> all() const {
    if (device.is_cpu()) return {device};
    return {Device(kCPU, 0), device};
  }
  std::vector<int64_t> now() const {
    std::vector<int64_t> numbers;
    for (Device d : all()) {
      const GeneratorState state = default_generator(d).get_state();
      numbers.push_back(static_cast<int64_t>(state.seed));
      numbers.push_back(static_cast<int64_t>(state.offset));
    }
    return numbers;
  }
  void save(serialize::OutputArchive& archive) const { archive.write("state", IValue(now())); }
  void load(serialize::InputArchive& archive) {
    IValue value;
    archive.read("state", value);
    loaded = value.toIntVector();
    RAMET_CHECK(loaded.size() == 2 || loaded.size() == 4, "train",
                "the checkpoint's generator is damaged");
  }
  void go_on_from(const std::vector<int64_t>& numbers) const {
    const auto state = [&](size_t i) {
      return GeneratorState{static_cast<uint64_t>(numbers[i]),
                            static_cast<uint64_t>(numbers[i + 1])};
    };
    default_generator(all()[0]).set_state(state(0));
    default_generator(device).set_state(state(numbers.size() - 2));
  }
};

class Run {
 public:
  explicit Run(Options& o);
  int train();

 private:
  using Loader =
      data::StatelessDataLoader<data::datasets::GatherDataset, data::samplers::RandomSampler>;

  const char* rows() const { return job_->rows(); }
  std::string file(const char* name) const { return options_.out + "/" + name; }
  Checkpoint checkpoint() {
    Checkpoint c;
    c.add("config", config_)
        .add("launch", launch_)
        .add("model", *model_)
        .add("optimizer", *optimizer_)
        .add("schedule", *schedule_)
        .add("loader", *loader_);
    if (scaler_->is_enabled()) c.add("scaler", *scaler_);
    c.add("random", *random_)
        .add("epoch", epoch_)
        .add("step", step_)
        .add("seconds", seconds_)
        .add("images", images_);
    return c;
  }
  /// Does this process write results? Verifying writes none.
  bool writes() const { return processes_->writes() && !ledger_->verifies(); }
  void save_checkpoint() {
    if (!writes()) return;
    checkpoint().save(file("checkpoint"));
    saved_at_ = Clock::now();
  }

  // Rank 0 alone has tested, and drawn for that.
  void agree_on_random_numbers() { random_->go_on_from(processes_->of_rank_0(random_->now())); }

  void check_batches() const;
  /// The step `after` more than this process's first one, or the last of that epoch.
  int64_t early_step(int64_t after) const {
    const int64_t left = steps_per_epoch_ - first_step_ % steps_per_epoch_ - 1;
    return first_step_ + std::min(after, left);
  }
  void write_explored();
  void make_ledger();
  void check_ledger() const;
  int verify();
  int report_verdict() const;
  bool train_epoch(ProgressBar& bar);
  StepRecord train_step(data::Example<>& batch);
  Job::Pass train_pass(int number, const data::Example<>& batch, bool last);
  EpochRecord test();
  void write_curve() const;
  void write_summary(const EpochRecord& last, const std::string& digest) const;
  void report_epoch(const EpochRecord& r) const;

  Options& options_;
  std::optional<InterruptGuard> signals_;
  std::unique_ptr<Job> job_;
  std::vector<Device> devices_;
  // weights, order and dropout are drawn there, whichever it is
  std::optional<DeviceGuard> leader_;
  std::optional<LeadingGenerators> random_;
  std::unique_ptr<Processes> processes_ = std::make_unique<Processes>();
  nn::Sequential model_{nullptr};
  std::unique_ptr<Replicas> replicas_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<optim::GradScaler> scaler_;  // off unless --autocast fp16
  std::optional<optim::CosineAnnealingLR> schedule_;
  std::unique_ptr<Loader> loader_;
  History history_;
  ChromeTrace trace_;
  Checkpoint ledger_parts_;
  std::optional<ledger::Ledger> ledger_;      // off unless asked for
  std::unique_ptr<StepRecording> recording_;  // while one step runs
  int64_t explored_ = 0;                      // the step that was recorded, counted from 1
  std::string config_, launch_;  // launch_id() of the processes that wrote the checkpoint
  int64_t steps_per_epoch_ = 0, parameters_ = 0;
  int64_t epoch_ = 0, step_ = 0, images_ = 0;  // done so far
  int64_t first_step_ = 0;                     // of this process
  double seconds_ = 0;                         // of training
  bool stop_ = false;                          // a signal came, to any of the processes
  Clock::time_point saved_at_ = Clock::now();
};

/// ", test iou 0.9315".
std::string text_of(const std::vector<Measure>& more, const std::string& prefix);

}  // namespace ramet::training
