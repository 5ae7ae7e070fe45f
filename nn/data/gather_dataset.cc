#include "nn/data/gather_dataset.h"

#include <algorithm>
#include <cstring>

namespace ramet {
namespace data {
namespace datasets {

namespace {

template <class T>
void convert(const T* from, float* to, int64_t n, float divisor, float mean, float stddev) {
  for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(from[i]) / divisor - mean) / stddev;
}
void look_up(const uint8_t* from, float* to, int64_t n, const float* table) {
  for (int64_t i = 0; i < n; ++i) to[i] = table[from[i]];
}

}  // namespace

GatherDataset::GatherDataset(Tensor rows, Tensor targets) : mean_{0}, stddev_{1} {
  for (const Tensor* t : {&rows, &targets}) {
    const char* name = t == &rows ? "rows" : "targets";
    RAMET_CHECK(t->defined() && t->is_cpu() && t->dim() > 0, "GatherDataset", name, ": got ",
                t->defined() ? describe(*t) : "an undefined tensor",
                ", expected one of at least 1 dimension on a CPU device");
  }
  RAMET_CHECK(rows.scalar_type() != kBool, "GatherDataset", "rows: got bool, expected numbers");
  RAMET_CHECK(rows.size(0) == targets.size(0), "GatherDataset", "targets: got ", targets.size(0),
              " rows, expected ", rows.size(0));
  rows_ = rows.detach().contiguous();
  targets_ = targets.detach().contiguous();
  size_ = static_cast<size_t>(rows_.size(0));
  divisor_ = rows_.scalar_type() == kByte ? 255.0f : 1.0f;
  fill_tables();
}

GatherDataset& GatherDataset::normalize(ArrayRef<double> mean, ArrayRef<double> stddev) {
  const size_t channels = rows_.dim() > 1 ? static_cast<size_t>(rows_.size(1)) : 1;
  for (ArrayRef<double> list : {mean, stddev}) {
    RAMET_CHECK(list.size() == 1 || list.size() == channels, "GatherDataset", "normalize: got ",
                list.size(), " values, expected 1 or ", channels);
  }
  mean_.assign(mean.begin(), mean.end());
  stddev_.assign(stddev.begin(), stddev.end());
  for (float s : stddev_) RAMET_CHECK(s != 0.0f, "GatherDataset", "stddev: got 0");
  fill_tables();
  return *this;
}

GatherDataset& GatherDataset::divide_by(double divisor) {
  RAMET_CHECK(divisor != 0.0, "GatherDataset", "divisor: got 0");
  divisor_ = static_cast<float>(divisor);
  fill_tables();
  return *this;
}

void GatherDataset::fill_tables() {
  if (rows_.scalar_type() != kByte) return;
  const size_t channels = std::max(mean_.size(), stddev_.size());
  tables_.resize(256 * channels);
  uint8_t bytes[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (size_t c = 0; c < channels; ++c) {
    convert(bytes, &tables_[256 * c], 256, divisor_, mean_[c % mean_.size()],
            stddev_[c % stddev_.size()]);
  }
}

Example<> GatherDataset::get_batch(ArrayRef<size_t> indices) {
  for (size_t i : indices) {
    if (i >= size_)
      throw IndexError(ramet::detail::join("[GatherDataset] index out of range: got ", i,
                                           ", expected less than ", size_));
  }
  const Device host(kCPU, 0);
  const auto batch_of = [&](const Tensor& rows, ScalarType dtype) {
    std::vector<int64_t> sizes = rows.sizes().vec();
    sizes[0] = static_cast<int64_t>(indices.size());
    return Tensor(TensorBase::empty(sizes, dtype, host));
  };
  Example<> batch{batch_of(rows_, kFloat), batch_of(targets_, targets_.scalar_type())};
  if (indices.empty()) return batch;

  const int64_t row = batch.data.numel() / static_cast<int64_t>(indices.size());
  const int64_t channels = static_cast<int64_t>(std::max(mean_.size(), stddev_.size()));
  const int64_t plane = row / channels;  // elements that share a mean; the whole row where all do
  float* to = batch.data.data_ptr<float>();
  const auto gather = [&](const auto* from, const auto& one_plane) {
    for (size_t i : indices)
      for (int64_t c = 0; c < channels; ++c, to += plane)
        one_plane(from + static_cast<int64_t>(i) * row + c * plane, c);
  };
  const auto numbers = [&](const auto* from) {
    gather(from, [&](const auto* p, int64_t c) {
      const auto at = static_cast<size_t>(c);
      convert(p, to, plane, divisor_, mean_[at % mean_.size()], stddev_[at % stddev_.size()]);
    });
  };
  switch (rows_.scalar_type()) {
    case kByte:
      gather(rows_.data_ptr<uint8_t>(), [&](const uint8_t* p, int64_t c) {
        look_up(p, to, plane, &tables_[static_cast<size_t>(256 * c)]);
      });
      break;
    case kChar: numbers(rows_.data_ptr<int8_t>()); break;
    case kShort: numbers(rows_.data_ptr<int16_t>()); break;
    case kInt: numbers(rows_.data_ptr<int32_t>()); break;
    case kLong: numbers(rows_.data_ptr<int64_t>()); break;
    case kUInt16: numbers(rows_.data_ptr<uint16_t>()); break;
    case kUInt32: numbers(rows_.data_ptr<uint32_t>()); break;
    case kHalf: numbers(rows_.data_ptr<Half>()); break;
    case kBFloat16: numbers(rows_.data_ptr<BFloat16>()); break;
    case kDouble: numbers(rows_.data_ptr<double>()); break;
    default: numbers(rows_.data_ptr<float>()); break;
  }

  const size_t bytes = batch.target.nbytes() / indices.size();
  const char* from = static_cast<const char*>(targets_.data_ptr());
  char* target = static_cast<char*>(batch.target.data_ptr());
  for (size_t i : indices) {
    if (bytes) std::memcpy(target, from + i * bytes, bytes);
    target += bytes;
  }
  return batch;
}

}  // namespace datasets
}  // namespace data
}  // namespace ramet
