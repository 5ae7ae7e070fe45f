// The name of a function by the name of its node.
//
// A node has one name, LibTorch's ("MaxPool2DWithIndicesBackward0"): programs compare it, and ONNX
// export finds its operators by it. It is all that a node made before anything observed the graph
// has. Recordings and errors of anomalies show functions, also for such nodes, so they read this
// name back. A second name in each of the 300 calls of record() would have to agree with the first.
#pragma once
#include <string>

namespace ramet {
namespace see {

/// "MaxPool2DWithIndicesBackward0": "max_pool2d_with_indices". A node of a backward keeps that
/// word: "MseLossBackwardBackward0" is "mse_loss_backward". What is no such name stays.
std::string operation_name(const std::string& node);

}  // namespace see
}  // namespace ramet
