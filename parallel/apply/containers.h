// How arguments of a data-parallel call are cut, and results joined. By type: a tensor is scattered
// and gathered; an optional, vector, array, pair, tuple, map, OrderedDict or a struct with
// RAMET_FIELDS goes member by member; everything else is copied to every replica (what a shared_ptr
// points to is shared), and as a result becomes a list of one value a replica.
//
//   struct Batch {
//     Tensor image, label;
//     RAMET_FIELDS(image, label)
//   };
//
// All scattered tensors of one call have the same extent along the dimension, unless an argument is
// wrapped. Undefined tensors stay undefined. A type of the user's own is joined by `static Whole
// gather(std::vector<T> parts)` where it has one.
#pragma once
#include "parallel/apply/join.h"
#include "parallel/apply/plan.h"
#include "parallel/apply/spread.h"
