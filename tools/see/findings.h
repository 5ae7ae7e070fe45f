// What looks wrong in a recording, in words.
#pragma once
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Where a finding begins. Each is a number that the text of the finding repeats.
struct FindingLimits {
  /// A ReLU is dead when at least this share of its outputs, and of the gradient that it passes on,
  /// is zero.
  double dead_zeros = 0.9;
  /// A layer's gradient has vanished (exploded) when its root mean square is less than 1 / this
  /// (more than this) times that of the layer nearest to the loss; it has also exploded when it is
  /// this many times its parameter's own root mean square, or has an infinite element.
  double gradient_ratio = 1e4;
  /// A saved tensor is large when it has at least this share of its device's peak, and these bytes.
  double saved_share = 0.25;
  int64_t saved_bytes = 1 << 20;
  /// A replica waits when its lane is idle for this share of the backward more than the busiest
  /// lane, and for this many ns.
  double idle_share = 0.25;
  uint64_t idle_ns = 100000;
};

/// Fills data.findings, whatever was there, in this order with
///   "no gradient": a parameter that has none, and why: frozen; no backward ran; never used;
///     detached, where; used, but not for the loss; the backward failed before
///   "dead relu": a ReLU nearly all of whose outputs and gradients are zero
///   "vanishing", "exploding": of parameters with two dimensions or more (layers' weights); at the
///     worst one, which names the others
///   "nan": the first operation, or node, whose result has a NaN its inputs had not
///   "large saved tensor": what the graph kept when memory was at its peak
///   "host wait": an operation made the program wait for a GPU before the step's end: item(), a
///     copy to the host, synchronize(), and what else asks for a number; not what stands between
///     two steps
///   "late replica": lanes of one backward that are busy for different times; of CPUs by nodes, of
///     GPUs by kernels; an emulated GPU's times say nothing
/// What was not recorded (statistics, source lines, memory, operands of what has no history) gives
/// no finding. Reads nothing but `data`.
RAMET_API void find(RecordingData& data);
RAMET_API void find(RecordingData& data, const FindingLimits& limits);

}  // namespace see
}  // namespace ramet
