// What the engine tells a capture.
#pragma once

namespace ramet {
namespace autograd {

struct AccumulateGrad;

/// Before a leaf's gradient is looked at or changed, on a thread that makes a capture.
void note_gradient(AccumulateGrad* sink);

}  // namespace autograd
}  // namespace ramet
