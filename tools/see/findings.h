// What looks wrong in a recording, in words.
#pragma once
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Thresholds of the findings. Each is a number that the text of the finding repeats.
struct FindingLimits {
  /// A ReLU is dead when at least this share of its outputs, and of the gradient that it passes on,
  /// is zero.
  double dead_zeros = 0.9;
  /// Limit of a layer's gradient, relative to the layer nearest to the loss. The gradient has
  /// vanished when its root mean square is less than 1 / this times that one's, and exploded when
  /// it is more than this times. It has also exploded when it is this many times its parameter's
  /// own root mean square, or has an infinite element.
  double gradient_ratio = 1e4;
  /// A saved tensor is large when it has at least this share of its device's peak, and at least
  /// `saved_bytes`:
  double saved_share = 0.25;
  int64_t saved_bytes = 1 << 20;
  /// A replica waits when its lane is idle much longer than the busiest lane: for this share of the
  /// backward, and for `idle_ns` nanoseconds:
  double idle_share = 0.25;
  uint64_t idle_ns = 100000;
};

/// Fills data.findings, replacing what it holds, with findings in this order:
/// - "no gradient": a parameter that has none, and why. It is frozen, never used, detached (where),
///   or used but not for the loss; no backward ran, or the backward failed before.
/// - "dead relu": a ReLU with nearly all outputs and gradients zero.
/// - "vanishing", "exploding": of parameters with two dimensions or more (layers' weights); at the
///   worst one, which names the others.
/// - "nan": the first operation or node with a NaN in its result and none in its inputs.
/// - "large saved tensor": what the graph kept when memory was at its peak.
/// - "host wait": an operation made the program wait for a GPU before the step's end. Such are
///   item(), a copy to the host, synchronize() and other requests for a number. Waits between two
///   steps do not count.
/// - "late replica": lanes of one backward that are busy for different times. Nodes give the times
///   of CPUs, kernels those of GPUs; an emulated GPU's times mean nothing.
///
/// What was not recorded gives no finding: statistics, source lines, memory, operands of operations
/// without history. Reads nothing but `data`.
RAMET_API void find(RecordingData& data);
RAMET_API void find(RecordingData& data, const FindingLimits& limits);

}  // namespace see
}  // namespace ramet
