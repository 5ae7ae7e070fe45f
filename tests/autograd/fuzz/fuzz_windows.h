// Convolutions and pools whose windows reach far beyond the image, against sums over all taps whose
// places are numbers of 128 bits.
#pragma once
#include "runtime/base/device.h"
#include "tests/fuzz.h"

namespace ramet {

/// What became of a draw: compared, refused as it has to be, or of a result too large to look at.
enum class FarDraw { kCompared, kRefused, kLarge };

/// Draws the numbers of one convolution, and compares result, gradients and their gradients.
FarDraw check_far_convolution(fuzz::Tape& tape, Device device);
/// Draws those of a maximum or an average.
FarDraw check_far_pool(fuzz::Tape& tape, Device device);

}  // namespace ramet
