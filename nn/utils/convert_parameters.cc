#include "nn/utils/convert_parameters.h"

#include "autograd/ops/shape/cat.h"

namespace ramet::nn::utils {
namespace {

void check_devices(const char* op, const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    RAMET_CHECK(p.defined(), op, "expected tensors: got an undefined one");
  for (const Tensor& p : parameters)
    RAMET_CHECK(p.device() == parameters[0].device(), op,
                "Found two parameters on different devices, this is currently not supported: ",
                describe(parameters[0]), " and ", describe(p));
}

}  // namespace

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  check_devices("parameters_to_vector", parameters);
  std::vector<Tensor> pieces;
  for (const Tensor& p : parameters) pieces.push_back(p.reshape(-1));
  return cat(pieces);
}

void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  check_devices("vector_to_parameters", parameters);
  int64_t total = 0;
  for (const Tensor& p : parameters) total += p.numel();
  RAMET_CHECK(vec.defined() && vec.dim() == 1 && vec.numel() == total, "vector_to_parameters",
              "vector: got ", describe(vec), ", expected ", total, " elements");
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vec.slice(0, at, at + p.numel()).view_as(p).data());
    at += p.numel();
  }
}

}  // namespace ramet::nn::utils
