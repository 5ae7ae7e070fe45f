// Pictures of shapes, for use without a data set. Colours, positions, sizes and rotations are
// random, and there is noise: only the shape determines the class of a picture, or of a pixel.
#pragma once
#include "tools/training/cifar.h"

namespace ramet::training {

/// As CIFAR-10: 32 x 32 pixels, one of ten shapes each. Set 0 is for training, set 1 for tests; the
/// first pictures of a set are the same for any `count`.
LabelledImages made_shapes(int64_t count, int64_t seed, int set);

/// 64 x 64 pixels, one to four shapes on each picture. `labels` are uint8 (N, 64, 64): 0 where
/// there is none, otherwise 1 to 3 for disk, square and triangle, the one in front.
LabelledImages made_scenes(int64_t count, int64_t seed, int set);

}  // namespace ramet::training
