#include "nn/layers/image/fold.h"

#include "autograd/ops/layers/im2col.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

Tensor FoldImpl::forward(const Tensor& input) {
  return functional::detail::fold(input, options.output_size(), options.kernel_size(),
                                  options.dilation(), options.padding(), options.stride());
}
Tensor UnfoldImpl::forward(const Tensor& input) {
  return functional::detail::unfold(input, options.kernel_size(), options.dilation(),
                                    options.padding(), options.stride());
}

RAMET_FIELDS(Fold, {"output_size", &o.output_size(), kCount},
             {"kernel_size", &o.kernel_size(), kCount}, {"dilation", &o.dilation(), kPositive},
             {"padding", &o.padding(), kNotNegative}, {"stride", &o.stride(), kPositive})
RAMET_FIELDS(Unfold, {"kernel_size", &o.kernel_size(), kCount},
             {"dilation", &o.dilation(), kPositive}, {"padding", &o.padding(), kNotNegative},
             {"stride", &o.stride(), kPositive})

namespace functional {

Tensor detail::fold(const Tensor& input, ExpandingArray<2> output_size,
                    ExpandingArray<2> kernel_size, ExpandingArray<2> dilation,
                    ExpandingArray<2> padding, ExpandingArray<2> stride) {
  RAMET_CHECK(input.defined(), "fold", "undefined tensor");
  RAMET_CHECK(input.dim() == 2 || input.dim() == 3, "fold", "Input Error: Only unbatched (2D) or ",
              "batched (3D) input Tensors are supported (got ", input.dim(), "D)");
  return col2im(input, output_size, kernel_size, dilation, padding, stride);
}
Tensor detail::unfold(const Tensor& input, ExpandingArray<2> kernel_size,
                      ExpandingArray<2> dilation, ExpandingArray<2> padding,
                      ExpandingArray<2> stride) {
  RAMET_CHECK(input.defined(), "unfold", "undefined tensor");
  RAMET_CHECK(input.dim() == 4, "unfold", "Input Error: Only 4D input Tensors are supported (got ",
              input.dim(), "D)");
  return im2col(input, kernel_size, dilation, padding, stride);
}
Tensor fold(const Tensor& input, const FoldFuncOptions& options) {
  return detail::fold(input, options.output_size(), options.kernel_size(), options.dilation(),
                      options.padding(), options.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options) {
  return detail::unfold(input, options.kernel_size(), options.dilation(), options.padding(),
                        options.stride());
}

}  // namespace functional
}  // namespace ramet::nn
