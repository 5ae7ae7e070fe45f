// Sequences of several lengths in one tensor, for recurrent modules.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/ops/shape/pad.h"
#include "autograd/tensor.h"

namespace ramet::nn::utils::rnn {

/// Sequences without padding, sorted by length, the longest first: all first elements, then all
/// second ones, ... Made by pack_padded_sequence and pack_sequence.
class RAMET_API PackedSequence {
 public:
  /// data: [sum of lengths, ...]. batch_sizes: int64 on the host, how many sequences have an
  /// element 0, 1, ... The indices sort a batch and restore its order; undefined means that it is
  /// sorted already.
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                          Tensor unsorted_indices = {});

  /// The parts, as the constructor took them:
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }

  /// In pinned memory; converted. batch_sizes stay on the host.
  PackedSequence pin_memory() const;
  /// With another dtype or device; batch_sizes stay on the host.
  PackedSequence to(const TensorOptions& options) const;
  /// to() of cuda:0, and of cpu:0:
  PackedSequence cuda() const { return to(TensorOptions(Device(kCUDA, 0))); }
  PackedSequence cpu() const { return to(TensorOptions(Device(kCPU, 0))); }
  /// Is the data on a GPU?
  bool is_cuda() const { return data_.is_cuda(); }
  /// Is it in pinned memory?
  bool is_pinned() const { return data_.is_pinned(); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

/// The inverse of a permutation of 0 .. n - 1 (int64, [n]); undefined of an undefined tensor.
RAMET_API Tensor invert_permutation(const Tensor& permutation);

/// input: [longest or more, batch, ...], or [batch, longest or more, ...] with batch_first.
/// lengths: int64 [batch] on the host, each at least 1. They are in descending order unless
/// enforce_sorted is false. Differentiable.
RAMET_API PackedSequence pack_padded_sequence(Tensor input, Tensor lengths,
                                              bool batch_first = false, bool enforce_sorted = true);
/// The reverse: [longest, batch, ...] (or batch first) with padding_value in the gaps, and the
/// lengths. total_length: at least the longest.
RAMET_API std::tuple<Tensor, Tensor> pad_packed_sequence(
    const PackedSequence& sequence, bool batch_first = false, double padding_value = 0.0,
    std::optional<int64_t> total_length = std::nullopt);
using ramet::pad_sequence;
/// pack_padded_sequence of sequences [length, ...] of any lengths of at least 1, the longest first
/// unless enforce_sorted is false.
RAMET_API PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted = true);

}  // namespace ramet::nn::utils::rnn
