// Convolutions and pools with windows that reach far beyond the image, compared with sums over all
// taps. The reference's places are numbers of 128 bits.
#pragma once
#include "runtime/base/device.h"
#include "tests/fuzz.h"

namespace ramet {

/// The outcome of a draw: compared, refused as it has to be, or with a result too large to compare.
enum class FarDraw { kCompared, kRefused, kLarge };

/// Draws the numbers of one convolution, and compares result, gradients and their gradients.
FarDraw check_far_convolution(fuzz::Tape& tape, Device device);
/// Draws the numbers of a maximum or an average.
FarDraw check_far_pool(fuzz::Tape& tape, Device device);

}  // namespace ramet
