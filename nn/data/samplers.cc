#include "nn/data/samplers.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "autograd/ops/random/random.h"
#include "kernels/random/random.h"
#include "nn/serialize/archive.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/mersenne.h"

namespace ramet {
namespace data {
namespace samplers {

namespace {

// Fisher and Yates' shuffle by Philox: a pure function of (n, key).
std::vector<size_t> permutation(size_t n, const PhiloxKey& key) {
  capture::refuse("RandomSampler", "the host shuffles");
  check_room("RandomSampler", "size", n, sizeof(int64_t) + sizeof(size_t));
  std::vector<int64_t> random(n);
  if (n > 0) {
    kernels::random_integers(
        {Device(kCPU, 0), 0},
        {random.data(), static_cast<int64_t>(n), {key.seed, key.offset, key.base}, 0, 0, kLong});
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = n; i > 1; --i) {
    const auto j = static_cast<size_t>(
        (static_cast<unsigned __int128>(static_cast<uint64_t>(random[i - 1])) * i) >> 64);
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

void write_count(serialize::OutputArchive& archive, const char* key, size_t value) {
  archive.write(key, IValue(static_cast<int64_t>(value)));
}
size_t read_count(serialize::InputArchive& archive, const char* key, size_t limit) {
  IValue value;
  archive.read(key, value);
  RAMET_CHECK(value.isInt() && value.toInt() >= 0 && static_cast<size_t>(value.toInt()) <= limit,
              "Sampler", "\"", key, "\" in the archive: expected a number from 0 to ", limit);
  return static_cast<size_t>(value.toInt());
}

Tensor to_tensor(const std::vector<size_t>& indices, ScalarType dtype) {
  Tensor t(TensorBase::empty({static_cast<int64_t>(indices.size())}, dtype, Device(kCPU, 0)));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (dtype == kLong) t.data_ptr<int64_t>()[i] = static_cast<int64_t>(indices[i]);
    else t.data_ptr<int32_t>()[i] = static_cast<int32_t>(indices[i]);
  }
  return t;
}
std::vector<size_t> from_tensor(const Tensor& t) {
  RAMET_CHECK(t.dim() == 1 && (t.scalar_type() == kLong || t.scalar_type() == kInt), "Sampler",
              "indices in the archive: got ", describe(t),
              ", expected int64 or int32 of 1 dimension");
  std::vector<size_t> indices(static_cast<size_t>(t.numel()));
  std::vector<bool> seen(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<size_t>(t.scalar_type() == kLong ? t.data_ptr<int64_t>()[i]
                                                              : t.data_ptr<int32_t>()[i]);
    RAMET_CHECK(indices[i] < indices.size() && !seen[indices[i]], "Sampler",
                "indices in the archive: got ", static_cast<int64_t>(indices[i]), " at ", i,
                ", expected each of ", indices.size(), " once");
    seen[indices[i]] = true;
  }
  return indices;
}

// The index of the i-th of `count` examples that process `rank` draws. After the last example it
// starts again at 0.
size_t place_of(size_t rank, size_t count, size_t i, size_t size) {
  return static_cast<size_t>((static_cast<unsigned __int128>(rank) * count + i) % size);
}

// The next min(batch_size, end - at) of them; `at` moves on.
template <class At>
std::optional<std::vector<size_t>> take(size_t batch_size, size_t& at, size_t end,
                                        const At& index) {
  if (at >= end) return std::nullopt;
  const size_t count = std::min(batch_size, end - at);
  check_room("Sampler", "batch_size", count, sizeof(size_t));
  std::vector<size_t> batch(count);
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = index(at + i);
  at += batch.size();
  return batch;
}

}  // namespace

// ---- RandomSampler ------------------------------------------------------------------------------

RandomSampler::RandomSampler(int64_t size, Dtype index_dtype) : index_dtype_(index_dtype) {
  RAMET_CHECK(size >= 0, "RandomSampler", "size: got ", size, ", expected at least 0");
  RAMET_CHECK(index_dtype == kLong || (index_dtype == kInt && size <= INT32_MAX), "RandomSampler",
              "index_dtype: got ", short_name_of(index_dtype),
              ", expected int64, or int32 for less than 2^31 examples");
  reset(static_cast<size_t>(size));
}
void RandomSampler::reset(std::optional<size_t> new_size) {
  const size_t n = new_size.value_or(indices_.size());
  check_room("RandomSampler", "size", n, sizeof(int64_t) + sizeof(size_t));
  index_ = 0;
  if (draws_from_mersenne(current_device(), {})) {
    const Tensor order = randperm(static_cast<int64_t>(n));
    const auto* p = static_cast<const int64_t*>(order.ptr());
    indices_.assign(p, p + n);
    return;
  }
  Generator generator = default_generator(current_device());
  indices_ = permutation(n, generator.reserve(static_cast<int64_t>(n)));
}
std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  return take(batch_size, index_, indices_.size(), [&](size_t i) { return indices_[i]; });
}
void RandomSampler::save(serialize::OutputArchive& archive) const {
  write_count(archive, "index", index_);
  archive.write("indices", to_tensor(indices_, index_dtype_));
}
void RandomSampler::load(serialize::InputArchive& archive) {
  Tensor indices;
  archive.read("indices", indices);
  std::vector<size_t> order = from_tensor(indices);
  index_ = read_count(archive, "index", order.size());
  indices_ = std::move(order);
}

// ---- SequentialSampler --------------------------------------------------------------------------

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}
std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  return take(batch_size, index_, size_, [](size_t i) { return i; });
}
void SequentialSampler::save(serialize::OutputArchive& archive) const {
  write_count(archive, "index", index_);
}
void SequentialSampler::load(serialize::InputArchive& archive) {
  index_ = read_count(archive, "index", size_);
}

// ---- distributed --------------------------------------------------------------------------------

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  reset();
}
void DistributedRandomSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
  // By the epoch alone: all processes draw the same order.
  if (generator_kind() == GeneratorKind::kMersenne) {
    // LibTorch shuffles what all processes draw, with the standard library's engine.
    std::vector<size_t> all(num_replicas_ == 1 ? size_ : local_sample_count() * num_replicas_);
    for (size_t i = 0; i < all.size(); ++i) all[i] = i % size_;
    std::shuffle(all.begin(), all.end(), std::mt19937(static_cast<uint32_t>(epoch_)));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank_ * local_sample_count());
    indices_.assign(first, first + static_cast<std::ptrdiff_t>(local_sample_count()));
    return;
  }
  const std::vector<size_t> order = permutation(size_, {kDefaultSeed, epoch_, 0});
  const size_t count = local_sample_count();
  indices_.resize(size_ == 0 ? 0 : count);
  for (size_t i = 0; i < indices_.size(); ++i)
    indices_[i] = order[place_of(rank_, count, i, size_)];
}
std::optional<std::vector<size_t>> DistributedRandomSampler::next(size_t batch_size) {
  return take(batch_size, index_, indices_.size(), [&](size_t i) { return indices_[i]; });
}
void DistributedRandomSampler::save(serialize::OutputArchive& archive) const {
  write_count(archive, "epoch", epoch_);
  write_count(archive, "index", index_);
}
void DistributedRandomSampler::load(serialize::InputArchive& archive) {
  const size_t epoch = read_count(archive, "epoch", SIZE_MAX >> 1),
               index = read_count(archive, "index", size_ == 0 ? 0 : local_sample_count());
  epoch_ = epoch;
  reset();
  index_ = index;
}

DistributedSequentialSampler::DistributedSequentialSampler(size_t size, size_t num_replicas,
                                                           size_t rank, bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {}
void DistributedSequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}
std::optional<std::vector<size_t>> DistributedSequentialSampler::next(size_t batch_size) {
  const size_t count = local_sample_count();
  return take(batch_size, index_, size_ == 0 ? 0 : count,
              [&](size_t i) { return place_of(rank_, count, i, size_); });
}
void DistributedSequentialSampler::save(serialize::OutputArchive& archive) const {
  write_count(archive, "index", index_);
}
void DistributedSequentialSampler::load(serialize::InputArchive& archive) {
  index_ = read_count(archive, "index", local_sample_count());
}

// ---- StreamSampler ------------------------------------------------------------------------------

CustomBatchRequest::~CustomBatchRequest() = default;

void StreamSampler::reset(std::optional<size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  examples_retrieved_so_far_ = 0;
}
std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  if (examples_retrieved_so_far_ >= epoch_size_) return std::nullopt;
  BatchSize request(std::min(batch_size, epoch_size_ - examples_retrieved_so_far_));
  examples_retrieved_so_far_ += request.size();
  return request;
}
void StreamSampler::save(serialize::OutputArchive& archive) const {
  write_count(archive, "examples_retrieved_so_far", examples_retrieved_so_far_);
}
void StreamSampler::load(serialize::InputArchive& archive) {
  examples_retrieved_so_far_ = read_count(archive, "examples_retrieved_so_far", epoch_size_);
}

}  // namespace samplers
}  // namespace data
}  // namespace ramet
