// The movements as function objects, for programs written like LibTorch's own C++ data_parallel:
//
//   autograd::Scatter scatter(devices, /*chunk_sizes=*/std::nullopt, dim);
//   std::vector<Tensor> pieces = fmap<Tensor>(scatter.apply({std::move(input)}));
//   Tensor whole = autograd::Gather(output_device, dim).apply(std::move(outputs)).front();
//
// Values, gradients (to any order), rules and errors are those of parallel/nodes/scatter_gather.h
// and parallel/nodes/broadcast_reduce.h. The objects are not nodes of the graph; those functions
// record the nodes.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// Cuts one tensor into pieces along `dim`, piece i on devices[i], by sizes or by the chunk rule.
/// There may be fewer pieces than devices.
struct RAMET_API Scatter {
  /// `streams` only keeps LibTorch's order of arguments: each device queues its work itself. With
  /// `unsqueeze_scalars` the input has one dimension and one element for each device, and the
  /// pieces are 0-dim. That inverts what Gather does with 0-dim tensors.
  explicit Scatter(std::vector<Device> devices,
                   std::optional<std::vector<int64_t>> chunk_sizes = std::nullopt, int64_t dim = 0,
                   std::nullopt_t streams = std::nullopt, bool unsqueeze_scalars = false);
  /// An Error unless there is exactly one input.
  std::vector<Tensor> apply(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(std::vector<Tensor> inputs) const {
    return apply(std::move(inputs));
  }

  /// The constructor's arguments:
  std::vector<Device> devices_;
  std::optional<std::vector<int64_t>> chunk_sizes_;
  int64_t dim_;
  bool unsqueeze_scalars_;
};

/// Concatenates tensors along `dim`, as a list of one.
struct RAMET_API Gather {
  explicit Gather(const Device& destination_device, int64_t dim = 0);
  /// The concatenation, as the only element of a list.
  std::vector<Tensor> apply(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(std::vector<Tensor> inputs) const {
    return apply(std::move(inputs));
  }

  /// The constructor's arguments:
  Device destination_device_;
  int64_t dim_;
};

/// Copies tensors of one device to each of `devices`: the copies on the first device, then those on
/// the second, and so on.
struct RAMET_API Broadcast {
  explicit Broadcast(std::vector<Device> devices);
  /// The copies, device by device.
  std::vector<Tensor> apply(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(std::vector<Tensor> inputs) const {
    return apply(std::move(inputs));
  }

  /// The constructor's argument.
  std::vector<Device> devices_;
};

/// The opposite of Broadcast: sums `num_inputs` tensors for each device, given device by device, on
/// `destination`.
struct RAMET_API ReduceAddCoalesced {
  ReduceAddCoalesced(const Device& destination, int64_t num_inputs);
  /// An Error unless the number of tensors is a multiple of `num_inputs`.
  std::vector<Tensor> apply(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(std::vector<Tensor> inputs) const {
    return apply(std::move(inputs));
  }

  /// The constructor's arguments:
  Device destination_;
  int64_t num_inputs_;
};

}  // namespace autograd

/// Applies fn to every element.
template <class F, class T>
auto fmap(T&& inputs, const F& fn) -> std::vector<std::decay_t<decltype(fn(*inputs.begin()))>> {
  std::vector<std::decay_t<decltype(fn(*inputs.begin()))>> out;
  out.reserve(inputs.size());
  for (auto&& input : inputs) out.push_back(fn(input));
  return out;
}
/// Makes an R of every element.
template <class R, class T> std::vector<R> fmap(const T& inputs) {
  std::vector<R> out;
  out.reserve(inputs.size());
  for (const auto& input : inputs) out.push_back(R(input));
  return out;
}

}  // namespace ramet
