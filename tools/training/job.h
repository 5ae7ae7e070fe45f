// A job: the data of one --model of the training program, and how it learns from them. run.cc has
// the loop around it; jobs.h has the list of jobs.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nn/data/gather_dataset.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "tools/training/history.h"
#include "tools/training/processes.h"

namespace ramet::training {

struct TrainingData {
  std::string name;
  // Rows (N, ...) of bytes; targets (N, ...) of whole numbers, which a step sees as int64.
  Tensor train_rows, train_targets, test_rows, test_targets;
  // A step sees (byte / 255 - mean) / stddev, one of both per channel; where there are none, the
  // byte's number.
  std::vector<double> mean = {}, stddev = {};

  data::datasets::GatherDataset batches(const Tensor& rows, const Tensor& targets) const;
};

/// Its constructor loads the data. Every other function has the default of a classifier. Outputs
/// are logits with the classes in dimension 1, of one answer a row or of many.
class Job {
 public:
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const TrainingData& data() const { return data_; }
  /// What a row is called, in the plural.
  virtual const char* rows() const { return "images"; }

  virtual nn::Sequential make_model(double dropout) const = 0;
  /// The fewest rows of a batch on each device, in training. It is two where a batch norm gets one
  /// value a channel from a row.
  virtual int64_t least_rows() const { return 1; }
  virtual optim::AdamWOptions optimizer(double lr) const { return optim::AdamWOptions(lr); }

  // A step is one pass, or several: a forward, its backward, and a step of the optimizer each.

  struct Pass {
    // This process's part of the loss: a sum over its rows, divided by the whole batch's size. The
    // bits are the same as with all rows.
    Tensor loss;
    // How many of the whole batch's `answers` are right in this process's rows. Undefined: not
    // counted. Where no pass counts them, a step has no accuracy (NaN).
    Tensor right = {};
    double answers = 0;
  };
  /// `batch`: the whole one, on the leading device.
  virtual Pass pass(int number, Replicas& model, const Processes& processes,
                    const data::Example<>& batch) const;
  /// The names of the losses of further passes. The first one's is "loss".
  virtual std::vector<std::string> further_passes() const { return {}; }
  /// Between backward and step: drops gradients of what this pass does not train.
  virtual void before_step(int /*pass*/, nn::Sequential& /*model*/) const {}

  // The rest is called with a model in evaluation mode, on `device`, without gradients.

  struct Tested {
    double loss, accuracy;
    std::vector<Measure> more = {};
  };
  virtual Tested test(nn::Sequential& model, Device device) const;
  /// The logits of rows.
  virtual Tensor output(nn::Sequential& model, const Tensor& rows) const {
    return model->forward(rows);
  }
  /// How many numbers the widest known layer has for a row: tests have fewer rows at once where
  /// these are many.
  virtual int64_t test_row_numbers() const { return data_.test_rows[0].numel(); }
  /// The test's measure from 0 to 1 that the curve shows.
  virtual std::string score() const { return "accuracy"; }
  /// PNG bytes, made after each epoch; none by default.
  virtual std::string pictures(nn::Sequential& /*model*/, Device /*device*/) const { return ""; }
  /// What is printed at the end; nothing by default.
  virtual std::string samples(nn::Sequential& /*model*/, Device /*device*/) const { return ""; }
  /// Writes model.safetensors.
  virtual void save_model(const nn::Sequential& model, const std::string& folder) const;

 protected:
  explicit Job(TrainingData data) : data_(std::move(data)) {}
  /// Of the test's rows, in batches.
  void for_test_batches(Device device, const std::function<void(data::Example<>&)>& f) const;
  /// Loss and accuracy; `also` sees every batch's output and targets.
  Tested test_classes(
      nn::Sequential& model, Device device,
      const std::function<void(const Tensor& output, const Tensor& targets)>& also) const;

  const TrainingData data_;
};

}  // namespace ramet::training
