// What PyTorch computes with a model (make.py), and the same by Ramet.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/script/script.h"
#include "ramet.h"

namespace ramet::models {

/// values.pt of one model.
struct Values {
  explicit Values(const std::string& path);
  /// The first inputs with floating-point ones in this dtype.
  std::vector<IValue> inputs(ScalarType dtype) const;

  IValue::GenericDict row;
  std::string loss;  // "squares", "burgers" or "none"
  double rate;       // of the steps
  bool parallel;     // also on several devices and ranks
};

/// Tensors that a forward gave, in order, and the loss that make.py forms of them.
struct Forward {
  std::vector<Tensor> outputs;
  Tensor loss;
};
Forward forward(script::ScriptModule& net, const Values& values, std::vector<IValue> inputs);

/// The largest differences from PyTorch's float64, relative to each tensor's largest element. A
/// part of the largest of all tensors is the least that counts: a millionth, in float32 as in
/// make.py.
struct Errors {
  double outputs = 0, grads = 0, buffers = 0;
  std::string worst;  // the gradient with the largest
  double most = 0;    // grads of the inputs where they are largest
};
/// For the first inputs, or with `all` the least for all of them (make.py says why).
Errors errors(const std::string& file, const Values& values, ScalarType dtype, bool all = false,
              Device device = Device(kCPU, 0));
/// The largest |loss - PyTorch's| of the steps of SGD, relative to losses above 1.
double loss_difference(const std::string& file, const Values& values, ScalarType dtype);
/// Is a result without gradients what PyTorch got? Otherwise the first difference.
std::string result_difference(const IValue& got, const IValue& want, const std::string& place = "");

/// How a model's parameters end after steps over cut batches: one line for each cut, with a digest.
/// `gpus`: on emulated GPUs.
struct Digest {
  std::string how, digest;
};
std::vector<Digest> digests_of_devices(const std::string& file, const Values& values, bool gpus);
std::vector<Digest> digests_of_ranks(const std::string& file, const Values& values);

}  // namespace ramet::models
