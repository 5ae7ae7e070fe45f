// Unfold and Fold: images as columns of blocks, and back.
#pragma once
#include "nn/module/expanding_array.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  RAMET_ARG(ExpandingArray<2>, output_size);
  RAMET_ARG(ExpandingArray<2>, kernel_size);
  RAMET_ARG(ExpandingArray<2>, dilation) = 1;
  RAMET_ARG(ExpandingArray<2>, padding) = 0;
  RAMET_ARG(ExpandingArray<2>, stride) = 1;
};
struct RAMET_API UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  RAMET_ARG(ExpandingArray<2>, kernel_size);
  RAMET_ARG(ExpandingArray<2>, dilation) = 1;
  RAMET_ARG(ExpandingArray<2>, padding) = 0;
  RAMET_ARG(ExpandingArray<2>, stride) = 1;
};

/// [n, c kh kw, blocks] (or without n) to [n, c, output_size].
class RAMET_API FoldImpl : public detail::ListedModule<FoldImpl, FoldOptions> {
 public:
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  explicit FoldImpl(const FoldOptions& options_) : ListedModule(options_) {}
  Tensor forward(const Tensor& input);
};
RAMET_LISTED_MODULE(Fold, FoldOptions)

/// [n, c, h, w] to [n, c kh kw, blocks].
class RAMET_API UnfoldImpl : public detail::ListedModule<UnfoldImpl, UnfoldOptions> {
 public:
  UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}
  explicit UnfoldImpl(const UnfoldOptions& options_) : ListedModule(options_) {}
  Tensor forward(const Tensor& input);
};
RAMET_LISTED_MODULE(Unfold, UnfoldOptions)

namespace functional {

using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;

namespace detail {
RAMET_API Tensor fold(const Tensor& input, ExpandingArray<2> output_size,
                      ExpandingArray<2> kernel_size, ExpandingArray<2> dilation,
                      ExpandingArray<2> padding, ExpandingArray<2> stride);
RAMET_API Tensor unfold(const Tensor& input, ExpandingArray<2> kernel_size,
                        ExpandingArray<2> dilation, ExpandingArray<2> padding,
                        ExpandingArray<2> stride);
}  // namespace detail
/// col2im of autograd/ops/layers/im2col.h.
RAMET_API Tensor fold(const Tensor& input, const FoldFuncOptions& options);
/// im2col of [n, c, h, w].
RAMET_API Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
