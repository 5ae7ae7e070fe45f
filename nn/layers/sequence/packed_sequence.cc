#include "nn/layers/sequence/packed_sequence.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "autograd/ops.h"
#include "runtime/capture/capture.h"

namespace ramet::nn::utils::rnn {
namespace {

std::vector<int64_t> numbers(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const int64_t* at = dense.const_data_ptr<int64_t>();
  return {at, at + dense.numel()};
}

// Consecutive elements that as many sequences have: each run is a rectangle of the padded tensor.
struct Run {
  int64_t begin, length, batch;
};
std::vector<Run> runs_of(const std::vector<int64_t>& batch_sizes) {
  std::vector<Run> runs;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    if (runs.empty() || runs.back().batch != batch_sizes[t])
      runs.push_back({static_cast<int64_t>(t), 0, batch_sizes[t]});
    ++runs.back().length;
  }
  return runs;
}

// `first` (the sizes of time and batch), followed by the sizes of an element.
std::vector<int64_t> with(std::initializer_list<int64_t> first, IntArrayRef rest) {
  std::vector<int64_t> sizes(first);
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

}  // namespace

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices,
                               Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  RAMET_CHECK(batch_sizes_.defined() && batch_sizes_.is_cpu(), "PackedSequence",
              "batch_sizes should always be on CPU: got ", describe(batch_sizes_));
  if (!unsorted_indices_.defined()) unsorted_indices_ = invert_permutation(sorted_indices_);
}
PackedSequence PackedSequence::pin_memory() const {
  const auto pinned = [](const Tensor& t) { return t.defined() ? t.pin_memory() : Tensor(); };
  return PackedSequence(data_.pin_memory(), batch_sizes_, pinned(sorted_indices_),
                        pinned(unsorted_indices_));
}
PackedSequence PackedSequence::to(const TensorOptions& options) const {
  const Tensor data = data_.to(options);
  if (data.is_same(data_)) return *this;
  const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(data.device()) : Tensor(); };
  return PackedSequence(data, batch_sizes_, moved(sorted_indices_), moved(unsorted_indices_));
}

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  const Tensor places =
      arange(permutation.numel(), TensorOptions(kLong).device(permutation.device()));
  return empty_like(permutation).scatter(0, permutation, places);
}

PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first,
                                    bool enforce_sorted) {
  constexpr const char* kOp = "pack_padded_sequence";
  capture::refuse(kOp, "the host reads the lengths");
  RAMET_CHECK(input.defined() && input.dim() >= 2, kOp, "input: got ", describe(input),
              ", expected [time, batch, ...]");
  RAMET_CHECK(lengths.defined() && lengths.is_cpu() && lengths.dim() == 1 &&
                  is_integral(lengths.scalar_type()),
              kOp, "'lengths' argument should be a 1D CPU int64 tensor, but got ",
              describe(lengths));
  if (batch_first) input = input.transpose(0, 1);
  std::vector<int64_t> ends = numbers(lengths.to(kLong));
  const auto count = static_cast<int64_t>(ends.size());
  RAMET_CHECK(count == input.size(1), kOp,
              "Expected `len(lengths)` to be equal to batch_size, got ", count,
              " (batch_size=", input.size(1), ")");
  RAMET_CHECK(count > 0, kOp, "Cannot pack empty tensors.");
  Tensor sorted_indices;
  if (!enforce_sorted) {
    std::vector<int64_t> order(ends.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return ends[static_cast<size_t>(a)] > ends[static_cast<size_t>(b)];
    });
    std::sort(ends.rbegin(), ends.rend());
    sorted_indices = tensor(order).to(input.device());
    input = input.index_select(1, sorted_indices);
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    RAMET_CHECK(ends[i] > 0, kOp,
                "Length of all samples has to be greater than 0, but found an element in "
                "'lengths' that is <= 0");
    RAMET_CHECK(i == 0 || ends[i - 1] >= ends[i], kOp,
                "`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
                "True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or "
                "pack_sequence to sidestep this requirement");
  }
  RAMET_CHECK(ends[0] <= input.size(0), kOp, "lengths: got ", ends[0], ", expected at most ",
              input.size(0), ", the input's");
  std::vector<int64_t> sizes(static_cast<size_t>(ends[0]));
  for (size_t t = 0, n = ends.size(); t < sizes.size(); ++t) {
    while (ends[n - 1] <= static_cast<int64_t>(t)) --n;
    sizes[t] = static_cast<int64_t>(n);
  }
  std::vector<Tensor> parts;
  for (const Run& run : runs_of(sizes))
    parts.push_back(input.narrow(0, run.begin, run.length)
                        .narrow(1, 0, run.batch)
                        .reshape(with({run.length * run.batch}, input.sizes().slice(2))));
  return PackedSequence(cat(parts), tensor(sizes), sorted_indices);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<int64_t> total_length) {
  capture::refuse("pad_packed_sequence", "the host reads batch_sizes");
  const std::vector<int64_t> sizes = numbers(sequence.batch_sizes());
  const Tensor& data = sequence.data();
  const auto longest = static_cast<int64_t>(sizes.size());
  const int64_t steps = total_length.value_or(longest), batch = sizes.empty() ? 0 : sizes[0];
  RAMET_CHECK(steps >= longest, "pad_packed_sequence",
              "Expected total_length to be at least the length of the longest sequence in input, "
              "but got total_length=",
              steps, " and max sequence length being ", longest);
  const IntArrayRef element = data.sizes().slice(1);
  const Tensor padded = full(with({steps, batch}, element), padding_value, data.options());
  std::vector<int64_t> lengths(static_cast<size_t>(batch));
  int64_t at = 0;
  for (const Run& run : runs_of(sizes)) {
    const int64_t rows = run.length * run.batch;
    padded.narrow(0, run.begin, run.length)
        .narrow(1, 0, run.batch)
        .copy_(data.narrow(0, at, rows).view(with({run.length, run.batch}, element)));
    at += rows;
    for (int64_t i = 0; i < run.batch; ++i)
      lengths[static_cast<size_t>(i)] = run.begin + run.length;
  }
  Tensor out = padded, ends = tensor(lengths);
  if (const Tensor& back = sequence.unsorted_indices(); back.defined()) {
    out = out.index_select(1, back);
    ends = ends.index_select(0, back.cpu());
  }
  return {batch_first ? out.transpose(0, 1) : out, ends};
}

PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted) {
  capture::refuse("pack_sequence", "the host reads the lengths");
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) {
    RAMET_CHECK(s.defined() && s.dim() >= 1, "pack_sequence", "got ", describe(s),
                ", expected [length, ...]");
    lengths.push_back(s.size(0));
  }
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths), false, enforce_sorted);
}

}  // namespace ramet::nn::utils::rnn
