// DataLoader: makes batches of a dataset in the order of a sampler, on worker threads if wanted.
// Its interface is LibTorch's.
//
//   auto loader = data::make_data_loader(datasets::MNIST(root).map(transforms::Stack<>()),
//       DataLoaderOptions(64).workers(2));
//   for (auto& batch : *loader) train(batch.data, batch.target);
//
// It does more than LibTorch's. A program may leave an epoch early and call begin() again. Random
// numbers drawn by datasets and transforms do not depend on the number of workers. save() and
// load() keep the position inside an epoch. A loader and its iterators belong to one thread.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/data/iterator.h"
#include "nn/data/samplers.h"
#include "nn/data/worker_exception.h"
#include "nn/data/worker_pool.h"
#include "nn/module/arg.h"
#include "nn/serialize/archive.h"

namespace ramet {
namespace data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}

  /// Examples in a batch.
  RAMET_ARG(size_t, batch_size) = 1;
  /// Threads that make batches, 4096 at most; 0: the thread that iterates.
  RAMET_ARG(size_t, workers) = 0;
  /// Batches made ahead at most; 2 * workers by default.
  RAMET_ARG(std::optional<size_t>, max_jobs);
  /// How long a batch may take, with workers.
  RAMET_ARG(std::optional<std::chrono::milliseconds>, timeout);
  /// Batches in the sampler's order; otherwise in the order they are ready.
  RAMET_ARG(bool, enforce_ordering) = true;
  /// Leaves out a last batch that is smaller than batch_size.
  RAMET_ARG(bool, drop_last) = false;
};

/// The options with every default filled in.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(DataLoaderOptions options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()) {
    RAMET_CHECK(batch_size > 0, "DataLoader", "batch_size: got 0, expected at least 1");
    RAMET_CHECK(workers <= kMostWorkers, "DataLoader", "workers: got ", workers,
                ", expected at most ", kMostWorkers, " threads");
    RAMET_CHECK(workers == 0 || max_jobs > 0, "DataLoader", "max_jobs: got 0 with ", workers,
                " workers, expected at least 1");
  }

  /// More threads are an Error.
  static constexpr size_t kMostWorkers = 4096;
  /// As DataLoaderOptions says:
  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

/// What loaders of all kinds of datasets share: iteration, worker threads, the position in an
/// epoch.
template <class Dataset, class Batch, class BatchRequest> class DataLoaderBase {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;

  explicit DataLoaderBase(DataLoaderOptions options,
                          std::unique_ptr<Dataset> main_thread_dataset = nullptr)
      : options_(options), main_thread_dataset_(std::move(main_thread_dataset)) {}
  DataLoaderBase(const DataLoaderBase&) = delete;
  DataLoaderBase& operator=(const DataLoaderBase&) = delete;
  virtual ~DataLoaderBase() { join(); }

  /// Begins an epoch (after load(): continues the loaded one). Iterators of an earlier epoch become
  /// invalid.
  Iterator<Batch> begin() {
    RAMET_CHECK(!joined_, "DataLoader", "begin() after join()");
    if (pool_) pool_->drain();
    if (!resumed_) {
      reset();
      delivered_ = 0;
      epoch_seed_ = detail::draw_epoch_seed();
    }
    resumed_ = false;
    exhausted_ = false;
    active_ = true;
    requested_ = delivered_;
    if (pool_) prefetch(options_.max_jobs);
    return Iterator<Batch>([this, epoch = ++epoch_] {
      RAMET_CHECK(epoch == epoch_, "DataLoader",
                  "an iterator was used after a new iteration had begun");
      std::optional<Batch> batch = next();
      active_ = batch.has_value();
      return batch;
    });
  }
  /// The position after the last batch.
  Iterator<Batch> end() { return {}; }

  /// Ends the worker threads. No iteration afterwards. The destructor does it too.
  void join() {
    joined_ = true;
    pool_.reset();
  }
  /// What it was made with.
  const FullDataLoaderOptions& options() const noexcept { return options_; }

  /// The position: which batches of this epoch were delivered, and what the rest will be. Load it
  /// into a loader of the same dataset, sampler class and options: its next begin() delivers the
  /// rest of the epoch. Between epochs there is no position, and the next begin() starts a new one.
  void save(serialize::OutputArchive& archive) const {
    RAMET_CHECK(options_.enforce_ordering || options_.workers <= 1, "DataLoader",
                "save: got batches in no fixed order from ", options_.workers,
                " workers, expected enforce_ordering");
    serialize::OutputArchive order;
    if (active_) save_order(order);
    archive.write("in_epoch", IValue(active_));
    if (!active_) return;
    archive.write("delivered", IValue(static_cast<int64_t>(delivered_)));
    archive.write("seed", IValue(static_cast<int64_t>(epoch_seed_)));
    archive.write("batch_size", IValue(static_cast<int64_t>(options_.batch_size)));
    archive.write("order", order);
  }
  /// Goes on where save() was called. An Error where the options do not fit.
  void load(serialize::InputArchive& archive) {
    IValue in_epoch;
    archive.read("in_epoch", in_epoch);
    if (!in_epoch.toBool()) {
      resumed_ = active_ = false;
      ++epoch_;
      return;
    }
    const auto number = [&](const char* key) {
      IValue value;
      archive.read(key, value);
      return value.toInt();
    };
    RAMET_CHECK(number("batch_size") == static_cast<int64_t>(options_.batch_size), "DataLoader",
                "batch_size: got ", options_.batch_size, ", expected ", number("batch_size"),
                " as when the position was saved");
    serialize::InputArchive order;
    archive.read("order", order);
    const auto delivered = static_cast<uint64_t>(number("delivered")),
               seed = static_cast<uint64_t>(number("seed"));
    load_order(order, delivered);
    delivered_ = delivered;
    epoch_seed_ = seed;
    resumed_ = active_ = true;
    ++epoch_;
  }

 protected:
  /// The next request; nothing at the end of the epoch.
  virtual std::optional<BatchRequest> get_batch_request() = 0;
  virtual void reset() = 0;
  virtual void save_order(serialize::OutputArchive& archive) const = 0;
  virtual void load_order(serialize::InputArchive& archive, uint64_t delivered) = 0;

  void start_workers(std::vector<detail::WorkerPool::Work> work) {
    pool_ = std::make_unique<detail::WorkerPool>(std::move(work), options_.enforce_ordering);
  }
  static detail::WorkerPool::Work worker(std::shared_ptr<Dataset> dataset) {
    return [dataset = std::move(dataset)](void* request) -> std::shared_ptr<void> {
      return std::make_shared<std::optional<Batch>>(
          dataset->get_batch(std::move(*static_cast<BatchRequest*>(request))));
    };
  }

  const FullDataLoaderOptions options_;
  std::unique_ptr<Dataset> main_thread_dataset_;

 private:
  void prefetch(size_t jobs) {
    for (size_t i = 0; i < jobs && !exhausted_; ++i) {
      std::optional<BatchRequest> request = get_batch_request();
      if (!request) {
        exhausted_ = true;
        return;
      }
      pool_->push(std::make_shared<BatchRequest>(std::move(*request)), {epoch_seed_, requested_++});
    }
  }

  std::optional<Batch> next() {
    if (!pool_) {
      RAMET_CHECK(!joined_, "DataLoader", "iteration after join()");
      std::optional<BatchRequest> request = exhausted_ ? std::nullopt : get_batch_request();
      std::optional<Batch> batch;
      if (request) {
        try {
          detail::with_program_random({epoch_seed_, requested_++}, [&] {
            batch = main_thread_dataset_->get_batch(std::move(*request));
          });
        } catch (...) {
          ++delivered_;  // the iteration may go on after it
          throw;
        }
      }
      exhausted_ = !batch;
      if (batch) ++delivered_;
      return batch;
    }
    while (pool_->in_flight() > 0) {
      detail::WorkerPool::Result result = pool_->pop(options_.timeout);
      if (result.exception) {
        ++delivered_;  // the iteration may go on after it
        prefetch(1);
        throw WorkerException(result.exception);
      }
      auto& batch = *static_cast<std::optional<Batch>*>(result.batch.get());
      if (batch) {
        ++delivered_;
        prefetch(1);
        return std::move(batch);
      }
      exhausted_ = true;  // a stateful dataset has ended; other workers may still hold batches
    }
    return std::nullopt;
  }

  std::unique_ptr<detail::WorkerPool> pool_;
  uint64_t epoch_ = 0, epoch_seed_ = 0;
  uint64_t requested_ = 0, delivered_ = 0;  // batches of this epoch
  bool exhausted_ = false, resumed_ = false, joined_ = false;
  bool active_ = false;  // between begin() and the end of the epoch
};

/// Over a dataset with indices (or requests) that a sampler chooses. Each worker has a copy of the
/// dataset.
template <class Dataset, class Sampler>
class StatelessDataLoader : public DataLoaderBase<Dataset, typename Dataset::BatchType,
                                                  typename Sampler::BatchRequestType> {
 public:
  using super =
      DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType>;
  using typename super::BatchRequestType;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : super(options), sampler_(std::move(sampler)), examples_(dataset.size()) {
    if (this->options_.workers == 0) {
      this->main_thread_dataset_ = std::make_unique<Dataset>(std::move(dataset));
      return;
    }
    if constexpr (std::is_copy_constructible<Dataset>::value) {
      std::vector<detail::WorkerPool::Work> work;
      for (size_t i = 0; i < this->options_.workers; ++i)
        work.push_back(super::worker(std::make_shared<Dataset>(dataset)));
      this->start_workers(std::move(work));
    } else {
      RAMET_CHECK(this->options_.workers == 1, "DataLoader", "workers: got ",
                  this->options_.workers,
                  " for a dataset that cannot be copied, expected at most 1");
      std::vector<detail::WorkerPool::Work> work;
      work.push_back(super::worker(std::make_shared<Dataset>(std::move(dataset))));
      this->start_workers(std::move(work));
    }
  }
  ~StatelessDataLoader() override { this->join(); }

 private:
  void reset() override {
    sampler_.reset(std::nullopt);
    if constexpr (kCopies) epoch_start_ = sampler_;
  }
  std::optional<BatchRequestType> get_batch_request() override { return request_from(sampler_); }
  std::optional<BatchRequestType> request_from(Sampler& sampler) {
    auto request = sampler.next(this->options_.batch_size);
    if (!request || (request->size() < this->options_.batch_size && this->options_.drop_last))
      return std::nullopt;
    return request;
  }
  // The sampler is ahead of what was delivered, so its state at the start of the epoch is saved,
  // and played forward at load.
  void save_order(serialize::OutputArchive& archive) const override {
    if constexpr (kCopies) {
      (epoch_start_ ? *epoch_start_ : sampler_).save(archive);
      if (examples_) archive.write("examples", IValue(static_cast<int64_t>(*examples_)));
    } else {
      (void)archive;
      fail("DataLoader", "save: the sampler cannot be copied, so its position is not known");
    }
  }
  void load_order(serialize::InputArchive& archive, uint64_t delivered) override {
    IValue examples;
    RAMET_CHECK(!examples_ || !archive.try_read("examples", examples) ||
                    examples.toInt() == static_cast<int64_t>(*examples_),
                "DataLoader", "dataset: got ", *examples_, " examples, expected ", examples.toInt(),
                " as when the position was saved");
    // Played forward on a copy, where it can be copied: an Error leaves the loader as it was.
    using Played = std::conditional_t<kCopies, Sampler, Sampler&>;
    Played sampler = sampler_;
    sampler.load(archive);
    std::optional<Sampler> start;
    if constexpr (kCopies) start = sampler;
    for (uint64_t i = 0; i < delivered; ++i) {
      RAMET_CHECK(request_from(sampler), "DataLoader", "load: the epoch ended after ", i,
                  " batches, expected at least ", delivered);
    }
    if constexpr (kCopies) {
      sampler_ = std::move(sampler);
      epoch_start_ = std::move(start);
    }
  }

  static constexpr bool kCopies =
      std::is_copy_constructible<Sampler>::value && std::is_copy_assignable<Sampler>::value;
  Sampler sampler_;
  std::optional<Sampler> epoch_start_;
  const std::optional<size_t> examples_;  // of the dataset
};

/// Over a dataset that decides itself what comes next. All workers share it.
template <class Dataset>
class StatefulDataLoader : public DataLoaderBase<Dataset, typename Dataset::BatchType::value_type,
                                                 typename Dataset::BatchRequestType> {
 public:
  using super = DataLoaderBase<Dataset, typename Dataset::BatchType::value_type,
                               typename Dataset::BatchRequestType>;
  using typename super::BatchRequestType;

  StatefulDataLoader(Dataset dataset, DataLoaderOptions options)
      : super(options, std::make_unique<Dataset>(std::move(dataset))) {
    if (this->options_.workers == 0) return;
    // outlives the workers
    std::shared_ptr<Dataset> shared(this->main_thread_dataset_.get(), [](Dataset*) {});
    std::vector<detail::WorkerPool::Work> work;
    for (size_t i = 0; i < this->options_.workers; ++i) work.push_back(super::worker(shared));
    this->start_workers(std::move(work));
  }
  ~StatefulDataLoader() override { this->join(); }

 private:
  void reset() override { this->main_thread_dataset_->reset(); }
  std::optional<BatchRequestType> get_batch_request() override { return this->options_.batch_size; }
  void save_order(serialize::OutputArchive& archive) const override {
    RAMET_CHECK(this->options_.workers == 0, "DataLoader", "save: got ", this->options_.workers,
                " workers reading ahead of a stateful dataset, expected 0");
    this->main_thread_dataset_->save(archive);
  }
  void load_order(serialize::InputArchive& archive, uint64_t) override {
    this->main_thread_dataset_->load(archive);
  }
};

template <class Dataset, class Sampler, class = std::enable_if_t<!Dataset::is_stateful>>
std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset,
                                                                        Sampler sampler,
                                                                        DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(std::move(dataset),
                                                                 std::move(sampler), options);
}

/// With a sampler made for the dataset's size:
/// make_data_loader<samplers::SequentialSampler>(std::move(dataset), 64).
template <class Sampler = samplers::RandomSampler, class Dataset>
std::enable_if_t<!Dataset::is_stateful && std::is_constructible<Sampler, size_t>::value,
                 std::unique_ptr<StatelessDataLoader<Dataset, Sampler>>>
make_data_loader(Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const std::optional<size_t> size = dataset.size();
  RAMET_CHECK(size.has_value(), "DataLoader",
              "Expected the dataset to be sized in order to construct the Sampler");
  // Samplers take a size_t or, as LibTorch's RandomSampler, an int64_t.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
  return make_data_loader(std::move(dataset), Sampler(*size), options);
#pragma GCC diagnostic pop
}

template <class Dataset, class = std::enable_if_t<Dataset::is_stateful>>
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), options);
}

}  // namespace data
}  // namespace ramet
