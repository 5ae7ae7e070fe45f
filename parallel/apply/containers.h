// How arguments of a data-parallel call are cut, and how results are joined, by type. A tensor is
// scattered and gathered. An optional, vector, array, pair, tuple, map, OrderedDict or a struct
// with RAMET_FIELDS is handled member by member. Any other type is copied to every replica, which
// shares the target of a shared_ptr. As a result, such a type becomes a list of one value for each
// replica.
//
//   struct Batch {
//     Tensor image, label;
//     RAMET_FIELDS(image, label)
//   };
//
// All scattered tensors of one call have the same extent along the dimension, unless an argument is
// wrapped. Undefined tensors stay undefined. If a user's type has `static Whole
// gather(std::vector<T> parts)`, that function joins it.
#pragma once
#include "parallel/apply/join.h"
#include "parallel/apply/plan.h"
#include "parallel/apply/spread.h"
