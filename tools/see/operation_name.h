// The name of a function by the name of its node.
#pragma once
#include <string>

namespace ramet {
namespace see {

/// "MaxPool2DWithIndicesBackward0": "max_pool2d_with_indices". A node of a backward keeps that
/// word: "MseLossBackwardBackward0" is "mse_loss_backward". What is no such name stays.
std::string operation_name(const std::string& node);

}  // namespace see
}  // namespace ramet
