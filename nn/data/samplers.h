// Samplers: which examples come next, as LibTorch's torch/data/samplers.
//
// reset() begins an epoch; next(batch_size) yields up to batch_size indices, then nothing. save()
// and load() carry the position inside an epoch. Belongs to one thread (a DataLoader calls it on
// the thread that iterates).
//
// Random orders come from the current cpu device's generator, one operation a reset, so
// manual_seed() fixes them. They are LibTorch's where the generator is of kind kMersenne.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace data {
namespace samplers {

/// Yields the request for each next batch: indices, or another request that the dataset takes.
template <class BatchRequest = std::vector<size_t>> class Sampler {
 public:
  using BatchRequestType = BatchRequest;

  virtual ~Sampler() = default;
  /// Begins an epoch, over `new_size` examples if given.
  virtual void reset(std::optional<size_t> new_size) = 0;
  /// Nothing at the end of the epoch. The last batch may be smaller.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
  /// Writes the position in the epoch, and reads it:
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class BatchRequest>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const Sampler<BatchRequest>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class BatchRequest>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    Sampler<BatchRequest>& sampler) {
  sampler.load(archive);
  return archive;
}

/// Each index once, in a new random order each epoch.
class RAMET_API RandomSampler : public Sampler<> {
 public:
  /// `index_dtype`: how save() stores the order.
  explicit RandomSampler(int64_t size, Dtype index_dtype = kInt64);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  /// How many indices this epoch has given so far.
  size_t index() const noexcept { return index_; }

 private:
  std::vector<size_t> indices_;
  size_t index_ = 0;
  Dtype index_dtype_;
};

/// 0, 1, 2, ...
class RAMET_API SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  /// How many indices this epoch has given so far.
  size_t index() const noexcept { return index_; }

 private:
  size_t size_, index_ = 0;
};

/// Each of `num_replicas` processes draws its own part of the examples. All parts have one size.
/// With `allow_duplicates` it is the smallest size that covers everything, and some indices are
/// drawn twice. Without, it is the largest size, and some indices are left out. The order is cut
/// into parts after it was made. So in a random order all indices are equally likely to be drawn
/// twice or left out; LibTorch always repeats the first ones.
template <class BatchRequest = std::vector<size_t>>
class DistributedSampler : public Sampler<BatchRequest> {
 public:
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                     bool allow_duplicates = true)
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
    RAMET_CHECK(num_replicas > 0, "DistributedSampler", "num_replicas: got 0, expected at least 1");
    RAMET_CHECK(rank < num_replicas, "DistributedSampler", "rank: got ", rank,
                ", expected less than num_replicas ", num_replicas);
  }
  /// Sets the epoch, on which random orders depend. It must be the same in all processes. Set it
  /// before each epoch.
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  /// The epoch that was set; 0 at first.
  size_t epoch() const { return epoch_; }

 protected:
  size_t local_sample_count() const {
    const bool one_more = allow_duplicates_ && size_ % num_replicas_ != 0;
    return size_ / num_replicas_ + one_more;
  }

  size_t size_, num_replicas_, rank_, epoch_ = 0;
  bool allow_duplicates_;
};

/// A random order by set_epoch() alone, cut into one range per process.
class RAMET_API DistributedRandomSampler : public DistributedSampler<> {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  /// How many indices this epoch has given so far.
  size_t index() const noexcept { return index_; }

 private:
  std::vector<size_t> indices_;  // this process's
  size_t index_ = 0;
};

/// Consecutive ranges, one per process.
class RAMET_API DistributedSequentialSampler : public DistributedSampler<> {
 public:
  DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                               bool allow_duplicates = true);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  /// How many indices this epoch has given so far.
  size_t index() const noexcept { return index_; }

 private:
  size_t index_ = 0;
};

/// A request of one's own; size() is how many examples it asks for.
struct RAMET_API CustomBatchRequest {
  CustomBatchRequest() = default;
  CustomBatchRequest(const CustomBatchRequest&) = default;
  CustomBatchRequest(CustomBatchRequest&&) noexcept = default;
  CustomBatchRequest& operator=(const CustomBatchRequest&) = default;
  CustomBatchRequest& operator=(CustomBatchRequest&&) noexcept = default;
  virtual ~CustomBatchRequest();
  /// How many examples are asked for.
  virtual size_t size() const = 0;
};

/// The request of a StreamSampler: a number of examples.
struct RAMET_API BatchSize : public CustomBatchRequest {
  explicit BatchSize(size_t size) : size_(size) {}
  size_t size() const noexcept override { return size_; }
  operator size_t() const noexcept { return size_; }
  /// How many examples are asked for.
  size_t size_;
};

/// For datasets without indices: asks for batches until `epoch_size` examples were delivered.
class RAMET_API StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<BatchSize> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t examples_retrieved_so_far_ = 0, epoch_size_;
};

}  // namespace samplers
}  // namespace data
}  // namespace ramet
