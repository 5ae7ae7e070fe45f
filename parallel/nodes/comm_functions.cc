#include "parallel/nodes/comm_functions.h"

#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"

namespace ramet::autograd {

Scatter::Scatter(std::vector<Device> devices, std::optional<std::vector<int64_t>> chunk_sizes,
                 int64_t dim, std::nullopt_t, bool unsqueeze_scalars)
    : devices_(std::move(devices)),
      chunk_sizes_(std::move(chunk_sizes)),
      dim_(dim),
      unsqueeze_scalars_(unsqueeze_scalars) {}

std::vector<Tensor> Scatter::apply(std::vector<Tensor> inputs) const {
  RAMET_CHECK(inputs.size() == 1, "Scatter", "inputs: got ", inputs.size(), " tensors, expected 1");
  const Tensor& input = inputs[0];
  const auto one_each = [&] {
    if (!input.defined() || input.dim() != 1 || input.numel() == 0) return false;
    if (!chunk_sizes_) return input.numel() <= static_cast<int64_t>(devices_.size());
    for (const int64_t size : *chunk_sizes_)
      if (size != 1) return false;
    return true;
  };
  RAMET_CHECK(!unsqueeze_scalars_ || one_each(), "Scatter", "unsqueeze_scalars: got ",
              describe(input), " for ", devices_.size(),
              " devices, expected one dimension with one element for each");
  std::vector<Tensor> pieces = parallel::scatter(input, devices_, chunk_sizes_, dim_);
  if (unsqueeze_scalars_)
    for (Tensor& piece : pieces) piece = piece.select(0, 0);
  return pieces;
}

Gather::Gather(const Device& destination_device, int64_t dim)
    : destination_device_(destination_device), dim_(dim) {}

std::vector<Tensor> Gather::apply(std::vector<Tensor> inputs) const {
  return {parallel::gather(inputs, dim_, destination_device_)};
}

Broadcast::Broadcast(std::vector<Device> devices) : devices_(std::move(devices)) {}

std::vector<Tensor> Broadcast::apply(std::vector<Tensor> inputs) const {
  std::vector<Tensor> out;
  out.reserve(devices_.size() * inputs.size());
  for (std::vector<Tensor>& row : parallel::broadcast_coalesced(inputs, devices_))
    for (Tensor& t : row) out.push_back(std::move(t));
  return out;
}

ReduceAddCoalesced::ReduceAddCoalesced(const Device& destination, int64_t num_inputs)
    : destination_(destination), num_inputs_(num_inputs) {
  RAMET_CHECK(num_inputs > 0, "ReduceAddCoalesced", "num_inputs: got ", num_inputs,
              ", expected 1 or more");
}

std::vector<Tensor> ReduceAddCoalesced::apply(std::vector<Tensor> inputs) const {
  const auto width = static_cast<size_t>(num_inputs_);
  RAMET_CHECK(inputs.size() % width == 0, "ReduceAddCoalesced", "inputs: got ", inputs.size(),
              " tensors, expected a multiple of ", width);
  std::vector<std::vector<Tensor>> rows;
  for (size_t at = 0; at < inputs.size(); at += width)
    rows.emplace_back(inputs.begin() + static_cast<std::ptrdiff_t>(at),
                      inputs.begin() + static_cast<std::ptrdiff_t>(at + width));
  return parallel::reduce_add_coalesced(rows, destination_);
}

}  // namespace ramet::autograd
