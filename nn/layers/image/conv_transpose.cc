#include "nn/layers/image/conv_transpose.h"

#include "autograd/ops/layers/conv.h"
#include "autograd/ops/make/factory.h"
#include "nn/layers/image/conv_fields_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::nn {

template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& options_)
    : ConvTransposeNdImpl::ListedModule(options_) {
  ConvTransposeNdImpl::reset();
}

template <size_t D, class Derived> void ConvTransposeNdImpl<D, Derived>::reset() {
  const int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  detail::check_channels(in, out, groups);
  std::vector<int64_t> shape{in, out / groups};
  shape.insert(shape.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  weight = this->register_parameter("weight", ramet::empty(shape));
  bias = options.bias() ? this->register_parameter("bias", empty({out}))
                        : this->register_parameter("bias", Tensor(), /*requires_grad=*/false);
  reset_parameters();
}

template <size_t D, class Derived> void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  detail::start_convolution(weight, bias);
}

template <size_t D, class Derived>
std::vector<int64_t> ConvTransposeNdImpl<D, Derived>::_output_padding(
    const Tensor& input, const std::optional<IntArrayRef>& output_size) const {
  if (!output_size) return IntArrayRef(options.output_padding()).vec();
  constexpr const char* kOp = "ConvTranspose";
  RAMET_CHECK(input.dim() == D + 1 || input.dim() == D + 2, kOp, "Expected ", D + 1,
              "D (unbatched) or ", D + 2, "D (batched) input, but got input ", describe(input));
  const size_t others = static_cast<size_t>(input.dim()) - D, given = output_size->size();
  RAMET_CHECK(given == D || given == D + others, kOp, "output_size must have ", D, " or ",
              D + others, " elements (got ", given, ")");
  const IntArrayRef wanted = output_size->slice(given - D);
  std::vector<int64_t> smallest, largest, padding;
  bool fits = true;
  for (size_t d = 0; d < D; ++d) {
    const auto product = [](int64_t a, int64_t b) { return checked_mul(kOp, "output_size", a, b); };
    const int64_t stride = (*options.stride())[d], kernel = (*options.kernel_size())[d];
    int64_t size = product(input.sizes()[others + d] - 1, stride);
    size = checked_add(kOp, "output_size", size, product((*options.dilation())[d], kernel - 1) + 1);
    size = checked_add(kOp, "output_size", size, product(-2, (*options.padding())[d]));
    smallest.push_back(size);
    largest.push_back(checked_add(kOp, "output_size", size, stride - 1));
    fits = fits && wanted[d] >= size && wanted[d] <= largest[d];
    padding.push_back(fits ? wanted[d] - size : 0);
  }
  RAMET_CHECK(fits, kOp, "requested an output size of ", wanted, ", but valid sizes range from ",
              IntArrayRef(smallest), " to ", IntArrayRef(largest), " (for an input of ",
              input.sizes().slice(others), ")");
  return padding;
}

template <size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(const Tensor& input,
                                                const std::optional<IntArrayRef>& output_size) {
  RAMET_CHECK(holds_alternative<enumtype::kZeros>(options.padding_mode()), "ConvTranspose",
              "Only `zeros` padding mode is supported for ConvTranspose", D, "d: got ",
              enumtype::get_enum_name(options.padding_mode()));
  constexpr decltype(&functional::detail::conv_transpose1d) kFunctions[] = {
      functional::detail::conv_transpose1d, functional::detail::conv_transpose2d,
      functional::detail::conv_transpose3d};
  return kFunctions[D - 1](input, weight, bias, options.stride(), options.padding(),
                           _output_padding(input, output_size), options.groups(),
                           options.dilation());
}

// The place of output_padding among conv_fields(): after dilation, as LibTorch prints it.
constexpr size_t kOutputPadding = 6;

#define RAMET_CONV_TRANSPOSE(D)                                                                    \
  template class ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>;                                  \
  RAMET_FIELDS(ConvTranspose##D##d,                                                                \
               with(conv_fields(o), kOutputPadding,                                                \
                    {"output_padding", &o.output_padding(), kIfChanged | kNotNegative}))           \
  namespace functional {                                                                           \
  Tensor detail::conv_transpose##D##d(const Tensor& input, const Tensor& weight,                   \
                                      const Tensor& bias, IntArrayRef stride, IntArrayRef padding, \
                                      IntArrayRef output_padding, int64_t groups,                  \
                                      IntArrayRef dilation) {                                      \
    return ramet::conv_transpose##D##d(input, weight, bias, stride, padding, output_padding,       \
                                       groups, dilation);                                          \
  }                                                                                                \
  Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                           \
                              const ConvTranspose##D##dFuncOptions& options) {                     \
    return detail::conv_transpose##D##d(input, weight, options.bias(), options.stride(),           \
                                        options.padding(), options.output_padding(),               \
                                        options.groups(), options.dilation());                     \
  }                                                                                                \
  }
RAMET_CONV_TRANSPOSE(1)
RAMET_CONV_TRANSPOSE(2)
RAMET_CONV_TRANSPOSE(3)
#undef RAMET_CONV_TRANSPOSE

}  // namespace ramet::nn
