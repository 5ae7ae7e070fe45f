#include "tools/training/job.h"

#include <algorithm>

#include "autograd/ops/loss/cross_entropy.h"
#include "nn/data.h"
#include "nn/serialize/save.h"

namespace ramet::training {

data::datasets::GatherDataset TrainingData::batches(const Tensor& rows,
                                                    const Tensor& targets) const {
  data::datasets::GatherDataset set(rows, targets);
  if (mean.empty()) set.divide_by(1);
  else set.normalize(mean, stddev);
  return set;
}

Job::Pass Job::pass(int /*number*/, Replicas& model, const Processes& processes,
                    const data::Example<>& batch) const {
  const auto answers = static_cast<double>(batch.target.numel());
  const Tensor output = model.forward(batch.data);
  const Tensor targets = processes.own_rows(batch.target);
  return {cross_entropy_loss(output, targets, {}, Reduction::Sum) / answers,
          output.detach().argmax(1).eq(targets).sum(), answers};
}

void Job::for_test_batches(Device device, const std::function<void(data::Example<>&)>& f) const {
  // Fewer where they are large: the layers of a model hold many times as many numbers.
  const int64_t row = std::max<int64_t>(1, test_row_numbers());
  const auto rows = static_cast<size_t>(std::clamp<int64_t>((int64_t{1} << 20) / row, 1, 500));
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      data_.batches(data_.test_rows, data_.test_targets),
      data::DataLoaderOptions(rows).workers(1).max_jobs(1));
  for (auto& batch : *loader) {
    batch.data = batch.data.to(device);
    batch.target = batch.target.to(device, kLong);
    f(batch);
  }
}

Job::Tested Job::test_classes(
    nn::Sequential& model, Device device,
    const std::function<void(const Tensor& output, const Tensor& targets)>& also) const {
  double loss = 0;
  int64_t right = 0;
  for_test_batches(device, [&](const data::Example<>& batch) {
    const Tensor output = this->output(model, batch.data);
    loss += cross_entropy_loss(output, batch.target).item<double>() *
            static_cast<double>(batch.target.numel());
    right += output.argmax(1).eq(batch.target).sum().item<int64_t>();
    if (also) also(output, batch.target);
  });
  const auto n = static_cast<double>(data_.test_targets.numel());
  return {loss / n, static_cast<double>(right) / n};
}

Job::Tested Job::test(nn::Sequential& model, Device device) const {
  return test_classes(model, device, {});
}

void Job::save_model(const nn::Sequential& model, const std::string& folder) const {
  save(model, folder + "/model.safetensors");
}

}  // namespace ramet::training
