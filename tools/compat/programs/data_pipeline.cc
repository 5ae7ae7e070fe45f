// Data by hand and by loaders. Styles: Dataset<Self>, BatchDataset, StatefulDataset, map() chains,
// transforms of one's own, a collation of one's own, samplers, options of the loader, iterating in
// three ways.
#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <vector>

using Example = torch::data::Example<>;

// Points (i, i^2 / 10) and whether i is even.
class Squares : public torch::data::datasets::Dataset<Squares> {
 public:
  enum class Mode { kTrain, kTest };
  explicit Squares(size_t count, Mode mode = Mode::kTrain)
      : count_(count), offset_(mode == Mode::kTrain ? 0 : 100) {}
  Example get(size_t index) override {
    const auto i = static_cast<int64_t>(index) + offset_;
    return {torch::tensor({static_cast<float>(i), static_cast<float>(i * i) / 10.0f}),
            torch::tensor(i % 2 == 0, torch::kLong)};
  }
  std::optional<size_t> size() const override { return count_; }

 private:
  size_t count_;
  int64_t offset_;
};

// Examples that are no tensors.
struct Word {
  std::string text;
  int label;
};
struct Words : torch::data::Dataset<Words, Word> {
  std::vector<std::string> words{"ramet", "shoot", "root", "leaf", "node"};
  Word get(size_t index) override { return {words.at(index), static_cast<int>(index)}; }
  torch::optional<size_t> size() const override { return words.size(); }
};

// Pads the words of a batch to one length: a collation.
struct Pad : torch::data::transforms::Collation<Example, std::vector<Word>> {
  Example apply_batch(std::vector<Word> batch) override {
    size_t longest = 0;
    for (const auto& word : batch) longest = std::max(longest, word.text.size());
    auto data = torch::zeros({static_cast<int64_t>(batch.size()), static_cast<int64_t>(longest)},
                             torch::kLong);
    auto target = torch::empty(static_cast<int64_t>(batch.size()), torch::kLong);
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t j = 0; j < batch[i].text.size(); ++j) data[i][j] = batch[i].text[j] - 'a' + 1;
      target[i] = batch[i].label;
    }
    return {data, target};
  }
};

// A transform with state of its own.
struct Shift : torch::data::transforms::TensorTransform<> {
  explicit Shift(double by) : by(by) {}
  torch::Tensor operator()(torch::Tensor input) override { return input + by; }
  double by;
};

// The whole batch at once.
struct Rows : torch::data::datasets::BatchDataset<Rows, std::vector<Example>> {
  std::vector<Example> get_batch(torch::ArrayRef<size_t> indices) override {
    std::vector<Example> rows;
    rows.reserve(indices.size());
    for (const auto i : indices)
      rows.emplace_back(torch::full({2}, static_cast<int>(i)),
                        torch::ones(1) * static_cast<int>(i));
    return rows;
  }
  torch::optional<size_t> size() const override { return 5; }
};

// A stream that ends when it is empty.
struct Countdown : torch::data::datasets::StatefulDataset<Countdown, int, size_t> {
  torch::optional<int> get_batch(size_t size) override {
    if (left <= 0) return torch::nullopt;
    left -= static_cast<int>(size);
    return std::max(left, 0);
  }
  torch::optional<size_t> size() const override { return torch::nullopt; }
  void reset() override { left = 7; }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
  int left = 7;
};

int main() {
  namespace data = torch::data;
  auto train = Squares(7)
                   .map(Shift(1))
                   .map(data::transforms::Normalize<>(2.0, {4.0}))
                   .map(data::transforms::Stack<>());
  const size_t count = train.size().value();
  auto loader =
      data::make_data_loader<data::samplers::SequentialSampler>(std::move(train), /*batch_size=*/3);
  size_t seen = 0;
  for (auto& batch : *loader) {
    std::cout << batch.data << "\n" << batch.target << "\n";
    seen += batch.data.size(0);
  }
  std::cout << seen << " of " << count << "\n";

  // Shuffled: what is seen is the same, in whatever order.
  auto shuffled = data::make_data_loader(
      Squares(10, Squares::Mode::kTest).map(data::transforms::Stack<Example>()),
      data::DataLoaderOptions().batch_size(4).workers(2).drop_last(true));
  double sum = 0;
  int batches = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : *shuffled) {
      sum += batch.data.size(1);
      ++batches;
    }
  }
  std::cout << batches << " batches, " << sum << "\n";

  auto words = data::make_data_loader<data::samplers::SequentialSampler>(
      Words().map(Pad()), data::DataLoaderOptions(2).enforce_ordering(true).workers(1));
  for (auto it = words->begin(); it != words->end(); ++it)
    std::cout << it->data << it->target << std::endl;

  // Without a collation, a batch is a vector of examples.
  auto rows = data::make_data_loader<data::samplers::SequentialSampler>(
      Rows().map(data::transforms::Lambda<Example>(
          [](Example e) { return Example(e.data * 2, e.target); })),
      2);
  for (const std::vector<Example>& batch : *rows) {
    for (const auto& example : batch)
      std::cout << example.data.sum().item<int>() << "/" << example.target.item<float>() << " ";
    std::cout << "(" << batch.size() << ")\n";
  }

  auto stream = data::make_data_loader(Countdown(), data::DataLoaderOptions(3));
  for (const int left : *stream) std::cout << "left " << left << "\n";

  // Samplers alone, a dataset out of tensors, datasets asked directly.
  data::samplers::SequentialSampler sampler(5);
  while (auto indices = sampler.next(2)) {
    for (const auto index : *indices) std::cout << index << " ";
    std::cout << "| at " << sampler.index() << "\n";
  }
  data::samplers::DistributedSequentialSampler part(10, /*num_replicas=*/3, /*rank=*/1,
                                                    /*allow_duplicates=*/true);
  std::cout << part.next(10).value() << "\n";
  data::datasets::TensorDataset tensors(torch::arange(12).view({4, 3}));
  std::cout << tensors.get(2).data << tensors.size().value() << "\n";
  auto stacked = Squares(3).map(data::transforms::Stack<>()).get_batch({0, 2});
  std::cout << stacked.data.sizes() << " " << stacked.target.dtype() << "\n";
  return 0;
}
