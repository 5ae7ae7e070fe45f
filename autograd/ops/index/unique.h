// Elements and slices without repetitions: LibTorch's functions of the same names. Equal is what ==
// says: 0 and -0 are, NaNs are not. Results have no history; how large they are is read, which a
// capture refuses.
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// The different elements, smallest first (whatever `sorted` says), NaNs last; for each element of
/// self the position of its equal among them, in self's shape; and how often each is there. int64
/// of no elements where the second or third are not asked for.
RAMET_API std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                                      bool return_inverse = false,
                                                      bool return_counts = false);
/// The first two of them.
RAMET_API std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true,
                                             bool return_inverse = false);
/// The different slices of a dimension, in lexicographic order of their elements; for each slice of
/// self the position of its equal, and how often each is there: both whether asked for or not, as
/// in LibTorch. An Error where slices of no elements would be told apart.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim,
                                                        bool sorted = true,
                                                        bool return_inverse = false,
                                                        bool return_counts = false);
/// The same of neighbours alone, in self's order: the first of each run of equal elements of the
/// flattened tensor, or of equal slices of `dim`.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_consecutive(
    const Tensor& self, bool return_inverse = false, bool return_counts = false,
    std::optional<int64_t> dim = std::nullopt);
/// Runs of equal slices of a dimension, each once; inverse and counts as above.
RAMET_API std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                                    bool return_inverse = false,
                                                                    bool return_counts = false);

}  // namespace ramet
