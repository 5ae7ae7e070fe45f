// Ramet's public names in LibTorch's namespaces. Written by tools/compat/names.py: do not edit.
//
// Real namespaces, so that programs may open them again, and using-declarations, so that what they add stands beside what is
// here. They take what has been declared before them: ramet/compat/torch.h includes this last. Which namespace declares
// what is as in LibTorch: a program's own torch::relu(Tensor) hides at::relu, its own torch::zeros(MyShape) is an overload.
//
// What cannot be had: a class named here is Ramet's, so `namespace torch { class Tensor; }` declares another one (include the
// door instead), and its templates are specialised in namespace ramet.
#pragma once
#include "ramet.h"

namespace c10 {
using ::ramet::ArrayRef;  // Ramet's class: include the door, no forward declaration
using ::ramet::AutoGradMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::BFloat16;  // Ramet's class: include the door, no forward declaration
using ::ramet::Backend;  // Ramet's class: include the door, no forward declaration
using ::ramet::CppTypeToScalarType;  // Ramet's class: include the door, no forward declaration
using ::ramet::DataPtr;  // Ramet's class: include the door, no forward declaration
using ::ramet::Device;  // Ramet's class: include the door, no forward declaration
using ::ramet::DeviceGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::DeviceIndex;
using ::ramet::DeviceType;  // Ramet's class: include the door, no forward declaration
using ::ramet::Dict;  // Ramet's class: include the door, no forward declaration
using ::ramet::Error;  // Ramet's class: include the door, no forward declaration
using ::ramet::Event;  // Ramet's class: include the door, no forward declaration
using ::ramet::GradMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::Half;  // Ramet's class: include the door, no forward declaration
using ::ramet::IValue;  // Ramet's class: include the door, no forward declaration
using ::ramet::IndexError;  // Ramet's class: include the door, no forward declaration
using ::ramet::InferenceMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::IntArrayRef;
using ::ramet::Layout;  // Ramet's class: include the door, no forward declaration
using ::ramet::LinAlgError;  // Ramet's class: include the door, no forward declaration
using ::ramet::List;  // Ramet's class: include the door, no forward declaration
using ::ramet::MemoryFormat;  // Ramet's class: include the door, no forward declaration
using ::ramet::NoGradGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::NotImplementedError;  // Ramet's class: include the door, no forward declaration
using ::ramet::OneOf;  // Ramet's class: include the door, no forward declaration
using ::ramet::OptionalIntArrayRef;  // Ramet's class: include the door, no forward declaration
using ::ramet::OutOfMemoryError;  // Ramet's class: include the door, no forward declaration
using ::ramet::Scalar;  // Ramet's class: include the door, no forward declaration
using ::ramet::ScalarType;  // Ramet's class: include the door, no forward declaration
using ::ramet::SourceLocation;  // Ramet's class: include the door, no forward declaration
using ::ramet::Storage;  // Ramet's class: include the door, no forward declaration
using ::ramet::StorageImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::Stream;  // Ramet's class: include the door, no forward declaration
using ::ramet::TensorImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::TensorOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::backendToDeviceType;
using ::ramet::canCast;
using ::ramet::contiguous_strides;
using ::ramet::device;
using ::ramet::device_index;
using ::ramet::dtype;
using ::ramet::elementSize;
using ::ramet::fmap;
using ::ramet::get_default_dtype;
using ::ramet::get_default_dtype_as_scalartype;
using ::ramet::get_if;
using ::ramet::holds_alternative;
using ::ramet::isComplexType;
using ::ramet::isFloatingType;
using ::ramet::isIntegralType;
using ::ramet::isReducedFloatingType;
using ::ramet::isSignedType;
using ::ramet::kBFloat16;
using ::ramet::kBool;
using ::ramet::kByte;
using ::ramet::kCPU;
using ::ramet::kCUDA;
using ::ramet::kChar;
using ::ramet::kDouble;
using ::ramet::kFloat;
using ::ramet::kHIP;
using ::ramet::kHalf;
using ::ramet::kInt;
using ::ramet::kLong;
using ::ramet::kMPS;
using ::ramet::kShort;
using ::ramet::kStrided;
using ::ramet::kUInt16;
using ::ramet::kUInt32;
using ::ramet::kXPU;
using ::ramet::layout;
using ::ramet::memory_format;
using ::ramet::nullopt;
using ::ramet::nullopt_t;
using ::ramet::optTypeMetaToScalarType;
using ::ramet::optional;
using ::ramet::promoteTypes;
using ::ramet::requires_grad;
using ::ramet::scalarTypeToTypeMeta;
using ::ramet::scalar_to_tensor;
using ::ramet::set_default_dtype;
using ::ramet::toString;
using ::ramet::typeMetaToScalarType;
}  // namespace c10

namespace caffe2 {
using ::ramet::TypeMeta;  // Ramet's class: include the door, no forward declaration
}  // namespace caffe2

namespace at {
using namespace c10;
}  // namespace at

namespace at {
using ::ramet::AutoGradMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::DefaultPtrTraits;  // Ramet's class: include the door, no forward declaration
using ::ramet::DeprecatedTypeProperties;  // Ramet's class: include the door, no forward declaration
using ::ramet::DeviceTypeName;
using ::ramet::Generator;  // Ramet's class: include the door, no forward declaration
using ::ramet::GenericPackedTensorAccessor;  // Ramet's class: include the door, no forward declaration
using ::ramet::NoGradGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::PackedTensorAccessor;
using ::ramet::PackedTensorAccessor32;
using ::ramet::PackedTensorAccessor64;
using ::ramet::RestrictPtrTraits;  // Ramet's class: include the door, no forward declaration
using ::ramet::Tensor;  // Ramet's class: include the door, no forward declaration
using ::ramet::TensorAccessor;  // Ramet's class: include the door, no forward declaration
using ::ramet::TensorBase;  // Ramet's class: include the door, no forward declaration
using ::ramet::TensorList;
using ::ramet::ThreadLocalState;  // Ramet's class: include the door, no forward declaration
using ::ramet::ThreadLocalStateGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::TypeMeta;  // Ramet's class: include the door, no forward declaration
using ::ramet::_sample_dirichlet;
using ::ramet::_unique;
using ::ramet::_unique2;
using ::ramet::_unsafe_view;
using ::ramet::_upsample_bicubic2d_aa;
using ::ramet::_upsample_bicubic2d_aa_out;
using ::ramet::_upsample_bilinear2d_aa;
using ::ramet::_upsample_bilinear2d_aa_out;
using ::ramet::_upsample_nearest_exact1d;
using ::ramet::_upsample_nearest_exact1d_out;
using ::ramet::_upsample_nearest_exact2d;
using ::ramet::_upsample_nearest_exact2d_out;
using ::ramet::_upsample_nearest_exact3d;
using ::ramet::_upsample_nearest_exact3d_out;
using ::ramet::abs;
using ::ramet::abs_;
using ::ramet::abs_out;
using ::ramet::absolute;
using ::ramet::absolute_out;
using ::ramet::acos;
using ::ramet::acos_;
using ::ramet::acos_out;
using ::ramet::acosh;
using ::ramet::acosh_;
using ::ramet::acosh_out;
using ::ramet::adaptive_avg_pool1d;
using ::ramet::adaptive_avg_pool2d;
using ::ramet::adaptive_avg_pool2d_out;
using ::ramet::adaptive_avg_pool3d;
using ::ramet::adaptive_avg_pool3d_out;
using ::ramet::adaptive_max_pool1d;
using ::ramet::adaptive_max_pool2d;
using ::ramet::adaptive_max_pool2d_out;
using ::ramet::adaptive_max_pool3d;
using ::ramet::adaptive_max_pool3d_out;
using ::ramet::add;
using ::ramet::add_out;
using ::ramet::addbmm;
using ::ramet::addbmm_out;
using ::ramet::addcdiv;
using ::ramet::addcdiv_out;
using ::ramet::addcmul;
using ::ramet::addcmul_out;
using ::ramet::addmm;
using ::ramet::addmm_out;
using ::ramet::addmv;
using ::ramet::addmv_;
using ::ramet::addmv_out;
using ::ramet::addr;
using ::ramet::addr_out;
using ::ramet::adjoint;
using ::ramet::all;
using ::ramet::all_out;
using ::ramet::allclose;
using ::ramet::alpha_dropout;
using ::ramet::alpha_dropout_;
using ::ramet::amax;
using ::ramet::amax_out;
using ::ramet::amin;
using ::ramet::amin_out;
using ::ramet::aminmax;
using ::ramet::aminmax_out;
using ::ramet::any;
using ::ramet::any_out;
using ::ramet::arange;
using ::ramet::arange_out;
using ::ramet::arccos;
using ::ramet::arccos_;
using ::ramet::arccos_out;
using ::ramet::arccosh;
using ::ramet::arccosh_;
using ::ramet::arccosh_out;
using ::ramet::arcsin;
using ::ramet::arcsin_;
using ::ramet::arcsin_out;
using ::ramet::arcsinh;
using ::ramet::arcsinh_;
using ::ramet::arcsinh_out;
using ::ramet::arctan;
using ::ramet::arctan2;
using ::ramet::arctan2_out;
using ::ramet::arctan_;
using ::ramet::arctan_out;
using ::ramet::arctanh;
using ::ramet::arctanh_;
using ::ramet::arctanh_out;
using ::ramet::argmax;
using ::ramet::argmax_out;
using ::ramet::argmin;
using ::ramet::argmin_out;
using ::ramet::argsort;
using ::ramet::argsort_out;
using ::ramet::argwhere;
using ::ramet::as_strided;
using ::ramet::as_strided_;
using ::ramet::as_strided_scatter;
using ::ramet::asin;
using ::ramet::asin_;
using ::ramet::asin_out;
using ::ramet::asinh;
using ::ramet::asinh_;
using ::ramet::asinh_out;
using ::ramet::atan;
using ::ramet::atan2;
using ::ramet::atan2_out;
using ::ramet::atan_;
using ::ramet::atan_out;
using ::ramet::atanh;
using ::ramet::atanh_;
using ::ramet::atanh_out;
using ::ramet::atleast_1d;
using ::ramet::atleast_2d;
using ::ramet::atleast_3d;
using ::ramet::avg_pool1d;
using ::ramet::avg_pool2d;
using ::ramet::avg_pool2d_out;
using ::ramet::avg_pool3d;
using ::ramet::avg_pool3d_out;
using ::ramet::baddbmm;
using ::ramet::baddbmm_out;
using ::ramet::bartlett_window;
using ::ramet::batch_norm;
using ::ramet::bernoulli;
using ::ramet::bernoulli_out;
using ::ramet::bilinear;
using ::ramet::binary_cross_entropy;
using ::ramet::binary_cross_entropy_out;
using ::ramet::binary_cross_entropy_with_logits;
using ::ramet::bincount;
using ::ramet::bincount_out;
using ::ramet::binomial;
using ::ramet::bitwise_and;
using ::ramet::bitwise_and_out;
using ::ramet::bitwise_left_shift;
using ::ramet::bitwise_left_shift_out;
using ::ramet::bitwise_not;
using ::ramet::bitwise_not_out;
using ::ramet::bitwise_or;
using ::ramet::bitwise_or_out;
using ::ramet::bitwise_right_shift;
using ::ramet::bitwise_right_shift_out;
using ::ramet::bitwise_xor;
using ::ramet::bitwise_xor_out;
using ::ramet::blackman_window;
using ::ramet::block_diag;
using ::ramet::block_diag_out;
using ::ramet::bmm;
using ::ramet::bmm_out;
using ::ramet::broadcast_tensors;
using ::ramet::broadcast_to;
using ::ramet::bucketize;
using ::ramet::bucketize_out;
using ::ramet::can_cast;
using ::ramet::cartesian_prod;
using ::ramet::cat;
using ::ramet::cat_out;
using ::ramet::cdist;
using ::ramet::ceil;
using ::ramet::ceil_;
using ::ramet::ceil_out;
using ::ramet::celu;
using ::ramet::celu_;
using ::ramet::chain_matmul;
using ::ramet::chain_matmul_out;
using ::ramet::channel_shuffle;
using ::ramet::channel_shuffle_out;
using ::ramet::cholesky_inverse;
using ::ramet::cholesky_inverse_out;
using ::ramet::cholesky_solve;
using ::ramet::cholesky_solve_out;
using ::ramet::chunk;
using ::ramet::clamp;
using ::ramet::clamp_;
using ::ramet::clamp_max;
using ::ramet::clamp_max_;
using ::ramet::clamp_max_out;
using ::ramet::clamp_min;
using ::ramet::clamp_min_;
using ::ramet::clamp_min_out;
using ::ramet::clamp_out;
using ::ramet::clip;
using ::ramet::clip_;
using ::ramet::clip_out;
using ::ramet::clone;
using ::ramet::col2im;
using ::ramet::col2im_out;
using ::ramet::column_stack;
using ::ramet::column_stack_out;
using ::ramet::combinations;
using ::ramet::concat;
using ::ramet::concat_out;
using ::ramet::concatenate;
using ::ramet::concatenate_out;
using ::ramet::constant_pad_nd;
using ::ramet::conv1d;
using ::ramet::conv2d;
using ::ramet::conv3d;
using ::ramet::conv_tbc;
using ::ramet::conv_transpose1d;
using ::ramet::conv_transpose2d;
using ::ramet::conv_transpose3d;
using ::ramet::convolution;
using ::ramet::copysign;
using ::ramet::copysign_out;
using ::ramet::corrcoef;
using ::ramet::cos;
using ::ramet::cos_;
using ::ramet::cos_out;
using ::ramet::cosh;
using ::ramet::cosh_;
using ::ramet::cosh_out;
using ::ramet::cosine_embedding_loss;
using ::ramet::cosine_similarity;
using ::ramet::count_nonzero;
using ::ramet::count_nonzero_out;
using ::ramet::cov;
using ::ramet::cross;
using ::ramet::cross_entropy_loss;
using ::ramet::cross_out;
using ::ramet::ctc_loss;
using ::ramet::cummax;
using ::ramet::cummax_out;
using ::ramet::cummin;
using ::ramet::cummin_out;
using ::ramet::cumprod;
using ::ramet::cumprod_out;
using ::ramet::cumsum;
using ::ramet::cumsum_out;
using ::ramet::cumulative_trapezoid;
using ::ramet::deg2rad;
using ::ramet::deg2rad_;
using ::ramet::deg2rad_out;
using ::ramet::det;
using ::ramet::detach;
using ::ramet::detach_;
using ::ramet::diag;
using ::ramet::diag_embed;
using ::ramet::diag_embed_out;
using ::ramet::diag_out;
using ::ramet::diagflat;
using ::ramet::diagonal;
using ::ramet::diagonal_scatter;
using ::ramet::diagonal_scatter_out;
using ::ramet::diff;
using ::ramet::diff_out;
using ::ramet::digamma;
using ::ramet::digamma_;
using ::ramet::digamma_out;
using ::ramet::dist;
using ::ramet::dist_out;
using ::ramet::div;
using ::ramet::div_out;
using ::ramet::divide;
using ::ramet::divide_out;
using ::ramet::dot;
using ::ramet::dot_out;
using ::ramet::dropout;
using ::ramet::dropout_;
using ::ramet::dsplit;
using ::ramet::dstack;
using ::ramet::dstack_out;
using ::ramet::einsum;
using ::ramet::elu;
using ::ramet::elu_;
using ::ramet::elu_out;
using ::ramet::embedding;
using ::ramet::embedding_bag;
using ::ramet::embedding_out;
using ::ramet::embedding_renorm;
using ::ramet::embedding_renorm_;
using ::ramet::embedding_renorm_out;
using ::ramet::empty;
using ::ramet::empty_like;
using ::ramet::empty_out;
using ::ramet::empty_strided;
using ::ramet::eq;
using ::ramet::eq_out;
using ::ramet::equal;
using ::ramet::erf;
using ::ramet::erf_;
using ::ramet::erf_out;
using ::ramet::erfc;
using ::ramet::erfc_;
using ::ramet::erfc_out;
using ::ramet::erfinv;
using ::ramet::erfinv_out;
using ::ramet::exp;
using ::ramet::exp2;
using ::ramet::exp2_;
using ::ramet::exp2_out;
using ::ramet::exp_;
using ::ramet::exp_out;
using ::ramet::expm1;
using ::ramet::expm1_;
using ::ramet::expm1_out;
using ::ramet::eye;
using ::ramet::eye_out;
using ::ramet::feature_alpha_dropout;
using ::ramet::feature_alpha_dropout_;
using ::ramet::feature_dropout;
using ::ramet::feature_dropout_;
using ::ramet::fill_;
using ::ramet::fix;
using ::ramet::fix_;
using ::ramet::fix_out;
using ::ramet::flatten;
using ::ramet::flip;
using ::ramet::fliplr;
using ::ramet::flipud;
using ::ramet::float_power;
using ::ramet::float_power_out;
using ::ramet::floor;
using ::ramet::floor_;
using ::ramet::floor_divide;
using ::ramet::floor_divide_out;
using ::ramet::floor_out;
using ::ramet::fmax;
using ::ramet::fmax_out;
using ::ramet::fmin;
using ::ramet::fmin_out;
using ::ramet::fmod;
using ::ramet::fmod_out;
using ::ramet::frac;
using ::ramet::frac_;
using ::ramet::frac_out;
using ::ramet::frexp;
using ::ramet::frexp_out;
using ::ramet::frobenius_norm;
using ::ramet::frobenius_norm_out;
using ::ramet::from_blob;
using ::ramet::from_file;
using ::ramet::full;
using ::ramet::full_like;
using ::ramet::gather;
using ::ramet::gather_out;
using ::ramet::gcd;
using ::ramet::gcd_;
using ::ramet::gcd_out;
using ::ramet::ge;
using ::ramet::ge_out;
using ::ramet::gelu;
using ::ramet::gelu_;
using ::ramet::gelu_backward;
using ::ramet::gelu_out;
using ::ramet::ger;
using ::ramet::ger_out;
using ::ramet::get_num_threads;
using ::ramet::glu;
using ::ramet::glu_out;
using ::ramet::gradient;
using ::ramet::greater;
using ::ramet::greater_equal;
using ::ramet::greater_equal_out;
using ::ramet::greater_out;
using ::ramet::group_norm;
using ::ramet::gru;
using ::ramet::gru_cell;
using ::ramet::gt;
using ::ramet::gt_out;
using ::ramet::hamming_window;
using ::ramet::hann_window;
using ::ramet::hardshrink;
using ::ramet::hardshrink_out;
using ::ramet::hardsigmoid;
using ::ramet::hardsigmoid_;
using ::ramet::hardsigmoid_out;
using ::ramet::hardswish;
using ::ramet::hardswish_;
using ::ramet::hardswish_out;
using ::ramet::hardtanh;
using ::ramet::hardtanh_;
using ::ramet::hardtanh_out;
using ::ramet::heaviside;
using ::ramet::heaviside_out;
using ::ramet::hinge_embedding_loss;
using ::ramet::histc;
using ::ramet::histc_out;
using ::ramet::histogram;
using ::ramet::histogram_out;
using ::ramet::histogramdd;
using ::ramet::hsplit;
using ::ramet::hstack;
using ::ramet::hstack_out;
using ::ramet::huber_loss;
using ::ramet::huber_loss_out;
using ::ramet::hypot;
using ::ramet::hypot_out;
using ::ramet::im2col;
using ::ramet::im2col_out;
using ::ramet::index;
using ::ramet::index_add;
using ::ramet::index_add_out;
using ::ramet::index_copy;
using ::ramet::index_copy_out;
using ::ramet::index_fill;
using ::ramet::index_fill_out;
using ::ramet::index_out;
using ::ramet::index_put;
using ::ramet::index_put_;
using ::ramet::index_reduce;
using ::ramet::index_reduce_out;
using ::ramet::index_select;
using ::ramet::index_select_out;
using ::ramet::inner;
using ::ramet::inner_out;
using ::ramet::instance_norm;
using ::ramet::inverse;
using ::ramet::inverse_out;
using ::ramet::is_nonzero;
using ::ramet::is_same_size;
using ::ramet::isclose;
using ::ramet::isfinite;
using ::ramet::isin;
using ::ramet::isin_out;
using ::ramet::isinf;
using ::ramet::isinf_out;
using ::ramet::isnan;
using ::ramet::isnan_out;
using ::ramet::isneginf;
using ::ramet::isneginf_out;
using ::ramet::isposinf;
using ::ramet::isposinf_out;
using ::ramet::kaiser_window;
using ::ramet::kl_div;
using ::ramet::kron;
using ::ramet::kron_out;
using ::ramet::kthvalue;
using ::ramet::kthvalue_out;
using ::ramet::l1_loss;
using ::ramet::layer_norm;
using ::ramet::lcm;
using ::ramet::lcm_;
using ::ramet::lcm_out;
using ::ramet::ldexp;
using ::ramet::ldexp_;
using ::ramet::ldexp_out;
using ::ramet::le;
using ::ramet::le_out;
using ::ramet::leaky_relu;
using ::ramet::leaky_relu_;
using ::ramet::leaky_relu_backward;
using ::ramet::leaky_relu_out;
using ::ramet::lerp;
using ::ramet::lerp_out;
using ::ramet::less;
using ::ramet::less_equal;
using ::ramet::less_equal_out;
using ::ramet::less_out;
using ::ramet::lgamma;
using ::ramet::lgamma_;
using ::ramet::lgamma_out;
using ::ramet::linalg_cholesky;
using ::ramet::linalg_cholesky_out;
using ::ramet::linalg_cross;
using ::ramet::linalg_cross_out;
using ::ramet::linalg_det;
using ::ramet::linalg_det_out;
using ::ramet::linalg_eigh;
using ::ramet::linalg_eigh_out;
using ::ramet::linalg_eigvalsh;
using ::ramet::linalg_eigvalsh_out;
using ::ramet::linalg_inv;
using ::ramet::linalg_inv_out;
using ::ramet::linalg_matrix_norm;
using ::ramet::linalg_matrix_norm_out;
using ::ramet::linalg_matrix_power;
using ::ramet::linalg_matrix_power_out;
using ::ramet::linalg_matrix_rank;
using ::ramet::linalg_matrix_rank_out;
using ::ramet::linalg_multi_dot;
using ::ramet::linalg_multi_dot_out;
using ::ramet::linalg_norm;
using ::ramet::linalg_norm_out;
using ::ramet::linalg_pinv;
using ::ramet::linalg_pinv_out;
using ::ramet::linalg_qr;
using ::ramet::linalg_qr_out;
using ::ramet::linalg_slogdet;
using ::ramet::linalg_slogdet_out;
using ::ramet::linalg_solve;
using ::ramet::linalg_solve_out;
using ::ramet::linalg_solve_triangular;
using ::ramet::linalg_solve_triangular_out;
using ::ramet::linalg_svd;
using ::ramet::linalg_svd_out;
using ::ramet::linalg_svdvals;
using ::ramet::linalg_svdvals_out;
using ::ramet::linalg_vector_norm;
using ::ramet::linalg_vector_norm_out;
using ::ramet::linear;
using ::ramet::linear_out;
using ::ramet::linspace;
using ::ramet::linspace_out;
using ::ramet::log;
using ::ramet::log10;
using ::ramet::log10_;
using ::ramet::log10_out;
using ::ramet::log1p;
using ::ramet::log1p_;
using ::ramet::log1p_out;
using ::ramet::log2;
using ::ramet::log2_;
using ::ramet::log2_out;
using ::ramet::log_;
using ::ramet::log_out;
using ::ramet::log_sigmoid;
using ::ramet::log_sigmoid_out;
using ::ramet::log_softmax;
using ::ramet::log_softmax_out;
using ::ramet::logaddexp;
using ::ramet::logaddexp2;
using ::ramet::logaddexp2_out;
using ::ramet::logaddexp_out;
using ::ramet::logcumsumexp;
using ::ramet::logcumsumexp_out;
using ::ramet::logdet;
using ::ramet::logical_and;
using ::ramet::logical_and_out;
using ::ramet::logical_not;
using ::ramet::logical_not_out;
using ::ramet::logical_or;
using ::ramet::logical_or_out;
using ::ramet::logical_xor;
using ::ramet::logical_xor_out;
using ::ramet::logit;
using ::ramet::logit_;
using ::ramet::logit_out;
using ::ramet::logspace;
using ::ramet::logspace_out;
using ::ramet::logsumexp;
using ::ramet::logsumexp_out;
using ::ramet::lstm;
using ::ramet::lstm_cell;
using ::ramet::lt;
using ::ramet::lt_out;
using ::ramet::manual_seed;
using ::ramet::margin_ranking_loss;
using ::ramet::masked_fill;
using ::ramet::masked_fill_out;
using ::ramet::masked_scatter;
using ::ramet::masked_scatter_out;
using ::ramet::masked_select;
using ::ramet::masked_select_out;
using ::ramet::matmul;
using ::ramet::matmul_out;
using ::ramet::matrix_power;
using ::ramet::matrix_power_out;
using ::ramet::max;
using ::ramet::max_out;
using ::ramet::max_pool1d;
using ::ramet::max_pool1d_with_indices;
using ::ramet::max_pool2d;
using ::ramet::max_pool2d_with_indices;
using ::ramet::max_pool2d_with_indices_out;
using ::ramet::max_pool3d;
using ::ramet::max_pool3d_with_indices;
using ::ramet::max_pool3d_with_indices_out;
using ::ramet::maximum;
using ::ramet::maximum_out;
using ::ramet::mean;
using ::ramet::mean_out;
using ::ramet::median;
using ::ramet::median_out;
using ::ramet::meshgrid;
using ::ramet::min;
using ::ramet::min_out;
using ::ramet::minimum;
using ::ramet::minimum_out;
using ::ramet::mish;
using ::ramet::mish_;
using ::ramet::mish_out;
using ::ramet::mm;
using ::ramet::mm_out;
using ::ramet::mode;
using ::ramet::mode_out;
using ::ramet::moveaxis;
using ::ramet::movedim;
using ::ramet::mse_loss;
using ::ramet::mse_loss_out;
using ::ramet::msort;
using ::ramet::msort_out;
using ::ramet::mul;
using ::ramet::mul_out;
using ::ramet::multi_margin_loss;
using ::ramet::multi_margin_loss_out;
using ::ramet::multilabel_margin_loss;
using ::ramet::multilabel_margin_loss_out;
using ::ramet::multinomial;
using ::ramet::multinomial_out;
using ::ramet::multiply;
using ::ramet::multiply_out;
using ::ramet::mv;
using ::ramet::mv_out;
using ::ramet::mvlgamma;
using ::ramet::mvlgamma_out;
using ::ramet::nan_to_num;
using ::ramet::nan_to_num_;
using ::ramet::nan_to_num_out;
using ::ramet::nanmean;
using ::ramet::nanmean_out;
using ::ramet::nanmedian;
using ::ramet::nanmedian_out;
using ::ramet::nanquantile;
using ::ramet::nanquantile_out;
using ::ramet::nansum;
using ::ramet::nansum_out;
using ::ramet::narrow;
using ::ramet::native_channel_shuffle;
using ::ramet::native_dropout_backward;
using ::ramet::ne;
using ::ramet::ne_out;
using ::ramet::neg;
using ::ramet::neg_;
using ::ramet::neg_out;
using ::ramet::negative;
using ::ramet::negative_;
using ::ramet::negative_out;
using ::ramet::nextafter;
using ::ramet::nextafter_out;
using ::ramet::nll_loss;
using ::ramet::nll_loss2d;
using ::ramet::nll_loss2d_out;
using ::ramet::nll_loss_nd;
using ::ramet::nll_loss_out;
using ::ramet::nonzero;
using ::ramet::nonzero_numpy;
using ::ramet::nonzero_out;
using ::ramet::nonzero_static;
using ::ramet::nonzero_static_out;
using ::ramet::norm;
using ::ramet::norm_out;
using ::ramet::normal;
using ::ramet::normal_out;
using ::ramet::not_equal;
using ::ramet::not_equal_out;
using ::ramet::nuclear_norm;
using ::ramet::nuclear_norm_out;
using ::ramet::one_hot;
using ::ramet::ones;
using ::ramet::ones_like;
using ::ramet::outer;
using ::ramet::outer_out;
using ::ramet::pad;
using ::ramet::pad_sequence;
using ::ramet::pairwise_distance;
using ::ramet::pdist;
using ::ramet::permute;
using ::ramet::pinverse;
using ::ramet::pixel_shuffle;
using ::ramet::pixel_shuffle_out;
using ::ramet::pixel_unshuffle;
using ::ramet::pixel_unshuffle_out;
using ::ramet::poisson;
using ::ramet::poisson_nll_loss;
using ::ramet::polygamma;
using ::ramet::polygamma_out;
using ::ramet::positive;
using ::ramet::pow;
using ::ramet::pow_out;
using ::ramet::prelu;
using ::ramet::print;
using ::ramet::prod;
using ::ramet::prod_out;
using ::ramet::promote_types;
using ::ramet::put;
using ::ramet::put_out;
using ::ramet::quantile;
using ::ramet::quantile_out;
using ::ramet::rad2deg;
using ::ramet::rad2deg_;
using ::ramet::rad2deg_out;
using ::ramet::rand;
using ::ramet::rand_like;
using ::ramet::rand_out;
using ::ramet::randint;
using ::ramet::randint_like;
using ::ramet::randn;
using ::ramet::randn_like;
using ::ramet::randn_out;
using ::ramet::randperm;
using ::ramet::randperm_out;
using ::ramet::range;
using ::ramet::range_out;
using ::ramet::ravel;
using ::ramet::reciprocal;
using ::ramet::reciprocal_;
using ::ramet::reciprocal_out;
using ::ramet::reflection_pad1d;
using ::ramet::reflection_pad1d_out;
using ::ramet::reflection_pad2d;
using ::ramet::reflection_pad2d_out;
using ::ramet::reflection_pad3d;
using ::ramet::reflection_pad3d_out;
using ::ramet::relu;
using ::ramet::relu6;
using ::ramet::relu6_;
using ::ramet::relu_;
using ::ramet::relu_out;
using ::ramet::remainder;
using ::ramet::remainder_out;
using ::ramet::renorm;
using ::ramet::renorm_out;
using ::ramet::repeat_interleave;
using ::ramet::repeat_interleave_out;
using ::ramet::replication_pad1d;
using ::ramet::replication_pad1d_out;
using ::ramet::replication_pad2d;
using ::ramet::replication_pad2d_out;
using ::ramet::replication_pad3d;
using ::ramet::replication_pad3d_out;
using ::ramet::reshape;
using ::ramet::resize_as_;
using ::ramet::result_type;
using ::ramet::rms_norm;
using ::ramet::rnn_relu;
using ::ramet::rnn_relu_cell;
using ::ramet::rnn_tanh;
using ::ramet::rnn_tanh_cell;
using ::ramet::roll;
using ::ramet::roll_out;
using ::ramet::rot90;
using ::ramet::rot90_out;
using ::ramet::round;
using ::ramet::round_;
using ::ramet::round_out;
using ::ramet::row_stack;
using ::ramet::row_stack_out;
using ::ramet::rrelu;
using ::ramet::rrelu_;
using ::ramet::rsqrt;
using ::ramet::rsqrt_;
using ::ramet::rsqrt_out;
using ::ramet::rsub;
using ::ramet::scalar_tensor;
using ::ramet::scaled_dot_product_attention;
using ::ramet::scatter;
using ::ramet::scatter_add;
using ::ramet::scatter_add_out;
using ::ramet::scatter_out;
using ::ramet::scatter_reduce;
using ::ramet::scatter_reduce_out;
using ::ramet::searchsorted;
using ::ramet::searchsorted_out;
using ::ramet::segment_reduce;
using ::ramet::select;
using ::ramet::select_scatter;
using ::ramet::select_scatter_out;
using ::ramet::selu;
using ::ramet::selu_;
using ::ramet::set_num_threads;
using ::ramet::set_printoption_sci_mode;
using ::ramet::sigmoid;
using ::ramet::sigmoid_;
using ::ramet::sigmoid_backward;
using ::ramet::sigmoid_out;
using ::ramet::sign;
using ::ramet::sign_out;
using ::ramet::signbit;
using ::ramet::signbit_out;
using ::ramet::silu;
using ::ramet::silu_;
using ::ramet::silu_backward;
using ::ramet::silu_out;
using ::ramet::sin;
using ::ramet::sin_;
using ::ramet::sin_out;
using ::ramet::sinc;
using ::ramet::sinc_;
using ::ramet::sinc_out;
using ::ramet::sinh;
using ::ramet::sinh_;
using ::ramet::sinh_out;
using ::ramet::size;
using ::ramet::slice;
using ::ramet::slice_scatter;
using ::ramet::slice_scatter_out;
using ::ramet::slogdet;
using ::ramet::slogdet_out;
using ::ramet::smooth_l1_loss;
using ::ramet::smooth_l1_loss_out;
using ::ramet::soft_margin_loss;
using ::ramet::softmax;
using ::ramet::softmax_out;
using ::ramet::softplus;
using ::ramet::softplus_backward;
using ::ramet::softplus_out;
using ::ramet::softshrink;
using ::ramet::softshrink_out;
using ::ramet::sort;
using ::ramet::sort_out;
using ::ramet::split;
using ::ramet::split_with_sizes;
using ::ramet::sqrt;
using ::ramet::sqrt_;
using ::ramet::sqrt_out;
using ::ramet::square;
using ::ramet::square_;
using ::ramet::square_out;
using ::ramet::squeeze;
using ::ramet::stack;
using ::ramet::stack_out;
using ::ramet::std;
using ::ramet::std_mean;
using ::ramet::std_out;
using ::ramet::sub;
using ::ramet::sub_out;
using ::ramet::subtract;
using ::ramet::subtract_out;
using ::ramet::sum;
using ::ramet::sum_out;
using ::ramet::svd;
using ::ramet::svd_out;
using ::ramet::swapaxes;
using ::ramet::swapdims;
using ::ramet::t;
using ::ramet::take;
using ::ramet::take_along_dim;
using ::ramet::take_along_dim_out;
using ::ramet::take_out;
using ::ramet::tan;
using ::ramet::tan_;
using ::ramet::tan_out;
using ::ramet::tanh;
using ::ramet::tanh_;
using ::ramet::tanh_backward;
using ::ramet::tanh_out;
using ::ramet::tensor;
using ::ramet::tensor_split;
using ::ramet::tensordot;
using ::ramet::tensordot_out;
using ::ramet::threshold;
using ::ramet::threshold_;
using ::ramet::threshold_backward;
using ::ramet::threshold_out;
using ::ramet::tile;
using ::ramet::topk;
using ::ramet::topk_out;
using ::ramet::trace;
using ::ramet::trace_out;
using ::ramet::transpose;
using ::ramet::trapezoid;
using ::ramet::trapz;
using ::ramet::tril;
using ::ramet::tril_indices;
using ::ramet::tril_indices_out;
using ::ramet::tril_out;
using ::ramet::triplet_margin_loss;
using ::ramet::triu;
using ::ramet::triu_indices;
using ::ramet::triu_indices_out;
using ::ramet::triu_out;
using ::ramet::true_divide;
using ::ramet::true_divide_out;
using ::ramet::trunc;
using ::ramet::trunc_;
using ::ramet::trunc_out;
using ::ramet::unbind;
using ::ramet::unflatten;
using ::ramet::unique_consecutive;
using ::ramet::unique_dim;
using ::ramet::unique_dim_consecutive;
using ::ramet::unsqueeze;
using ::ramet::upsample_bicubic2d;
using ::ramet::upsample_bicubic2d_out;
using ::ramet::upsample_bilinear2d;
using ::ramet::upsample_bilinear2d_out;
using ::ramet::upsample_linear1d;
using ::ramet::upsample_linear1d_out;
using ::ramet::upsample_nearest1d;
using ::ramet::upsample_nearest1d_out;
using ::ramet::upsample_nearest2d;
using ::ramet::upsample_nearest2d_out;
using ::ramet::upsample_nearest3d;
using ::ramet::upsample_nearest3d_out;
using ::ramet::upsample_trilinear3d;
using ::ramet::upsample_trilinear3d_out;
using ::ramet::vander;
using ::ramet::var;
using ::ramet::var_mean;
using ::ramet::var_out;
using ::ramet::vdot;
using ::ramet::vdot_out;
using ::ramet::vsplit;
using ::ramet::vstack;
using ::ramet::vstack_out;
using ::ramet::where;
using ::ramet::where_out;
using ::ramet::xlogy;
using ::ramet::xlogy_;
using ::ramet::xlogy_out;
using ::ramet::zero_;
using ::ramet::zeros;
using ::ramet::zeros_like;
}  // namespace at

namespace torch {
using namespace at;
}  // namespace torch

namespace torch {
using ::ramet::AutoGradMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::Dtype;
using ::ramet::ExpandingArray;  // Ramet's class: include the door, no forward declaration
using ::ramet::ExpandingArrayWithOptionalElem;  // Ramet's class: include the door, no forward declaration
using ::ramet::NoGradGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::OrderedDict;  // Ramet's class: include the door, no forward declaration
using ::ramet::Tensor;  // Ramet's class: include the door, no forward declaration
using ::ramet::arange;
using ::ramet::bartlett_window;
using ::ramet::blackman_window;
using ::ramet::empty;
using ::ramet::empty_like;
using ::ramet::empty_strided;
using ::ramet::eye;
using ::ramet::from_blob;
using ::ramet::full;
using ::ramet::full_like;
using ::ramet::get_num_threads;
using ::ramet::hamming_window;
using ::ramet::hann_window;
using ::ramet::kArea;
using ::ramet::kBatchMean;
using ::ramet::kBicubic;
using ::ramet::kBilinear;
using ::ramet::kBorder;
using ::ramet::kCircular;
using ::ramet::kConstant;
using ::ramet::kConv1D;
using ::ramet::kConv2D;
using ::ramet::kConv3D;
using ::ramet::kConvTranspose1D;
using ::ramet::kConvTranspose2D;
using ::ramet::kConvTranspose3D;
using ::ramet::kF16;
using ::ramet::kF32;
using ::ramet::kF64;
using ::ramet::kFanIn;
using ::ramet::kFanOut;
using ::ramet::kFloat16;
using ::ramet::kFloat32;
using ::ramet::kFloat64;
using ::ramet::kGELU;
using ::ramet::kGRU;
using ::ramet::kI16;
using ::ramet::kI32;
using ::ramet::kI64;
using ::ramet::kI8;
using ::ramet::kInt16;
using ::ramet::kInt32;
using ::ramet::kInt64;
using ::ramet::kInt8;
using ::ramet::kLSTM;
using ::ramet::kLeakyReLU;
using ::ramet::kLinear;
using ::ramet::kMax;
using ::ramet::kMean;
using ::ramet::kMish;
using ::ramet::kNearest;
using ::ramet::kNearestExact;
using ::ramet::kNone;
using ::ramet::kRNN_RELU;
using ::ramet::kRNN_TANH;
using ::ramet::kReLU;
using ::ramet::kReflect;
using ::ramet::kReflection;
using ::ramet::kReplicate;
using ::ramet::kSame;
using ::ramet::kSiLU;
using ::ramet::kSigmoid;
using ::ramet::kSum;
using ::ramet::kTanh;
using ::ramet::kTrilinear;
using ::ramet::kU16;
using ::ramet::kU32;
using ::ramet::kU8;
using ::ramet::kUInt8;
using ::ramet::kValid;
using ::ramet::kZeros;
using ::ramet::kaiser_window;
using ::ramet::linspace;
using ::ramet::load;
using ::ramet::logspace;
using ::ramet::manual_seed;
using ::ramet::normal;
using ::ramet::ones;
using ::ramet::ones_like;
using ::ramet::pickle_load;
using ::ramet::pickle_save;
using ::ramet::rand;
using ::ramet::rand_like;
using ::ramet::randint;
using ::ramet::randint_like;
using ::ramet::randn;
using ::ramet::randn_like;
using ::ramet::randperm;
using ::ramet::range;
using ::ramet::save;
using ::ramet::scalar_tensor;
using ::ramet::set_num_threads;
using ::ramet::set_printoption_sci_mode;
using ::ramet::tensor;
using ::ramet::tril_indices;
using ::ramet::triu_indices;
using ::ramet::zeros;
using ::ramet::zeros_like;
}  // namespace torch

namespace at::Reduction {
using ::ramet::Reduction::END;
using ::ramet::Reduction::Mean;
using ::ramet::Reduction::None;
using ::ramet::Reduction::Reduction;  // Ramet's class: include the door, no forward declaration
using ::ramet::Reduction::Sum;
}  // namespace at::Reduction

namespace torch::autograd {
using ::ramet::autograd::AccumulateGrad;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::AddArguments;
using ::ramet::autograd::AnomalyMode;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Argument;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Arguments;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::AutoGradMode;
using ::ramet::autograd::AutogradContext;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Broadcast;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::DelayedError;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::DetectAnomalyGuard;
using ::ramet::autograd::Edge;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Function;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Gather;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::GradMode;
using ::ramet::autograd::GraphTask;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::IndexRange;
using ::ramet::autograd::InferenceMode;
using ::ramet::autograd::Node;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::RecurrentResult;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::ReduceAddCoalesced;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Scatter;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::UndefinedGrad;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::UndefinedGradBackward;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Variable;
using ::ramet::autograd::backward;
using ::ramet::autograd::edge_list;
using ::ramet::autograd::grad;
using ::ramet::autograd::make_variable;
using ::ramet::autograd::move_to_zeros;
using ::ramet::autograd::offset_of;
using ::ramet::autograd::tensor_list;
using ::ramet::autograd::variable_list;
}  // namespace torch::autograd

namespace torch::cuda {
using ::ramet::cuda::cudnn_is_available;
using ::ramet::cuda::device_count;
using ::ramet::cuda::is_available;
using ::ramet::cuda::manual_seed;
using ::ramet::cuda::manual_seed_all;
using ::ramet::cuda::synchronize;
}  // namespace torch::cuda

namespace torch::data {
using ::ramet::data::BatchDataset;
using ::ramet::data::DataLoaderBase;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::DataLoaderOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::Dataset;
using ::ramet::data::Example;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::FullDataLoaderOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::Iterator;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::StatefulDataLoader;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::StatelessDataLoader;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::TensorExample;
using ::ramet::data::WorkerException;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::make_data_loader;
}  // namespace torch::data

namespace torch::data::datasets {
using ::ramet::data::datasets::BatchDataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::Dataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::MNIST;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::MapDataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::SharedBatchDataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::StatefulDataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::StreamDataset;
using ::ramet::data::datasets::TensorDataset;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::datasets::make_shared_dataset;
using ::ramet::data::datasets::map;
}  // namespace torch::data::datasets

namespace torch::data::example {
using ::ramet::data::example::NoTarget;
}  // namespace torch::data::example

namespace torch::data::samplers {
using ::ramet::data::samplers::BatchSize;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::CustomBatchRequest;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::DistributedRandomSampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::DistributedSampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::DistributedSequentialSampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::RandomSampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::Sampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::SequentialSampler;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::samplers::StreamSampler;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::data::samplers

namespace torch::data::transforms {
using ::ramet::data::transforms::BatchLambda;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::BatchTransform;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::Collate;
using ::ramet::data::transforms::Collation;
using ::ramet::data::transforms::Lambda;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::Normalize;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::Stack;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::TensorLambda;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::TensorTransform;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::transforms::Transform;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::data::transforms

namespace torch::enumtype {
using ::ramet::enumtype::get_enum_name;
using ::ramet::enumtype::kArea;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kBatchMean;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kBicubic;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kBilinear;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kBorder;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kCircular;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConstant;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConv1D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConv2D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConv3D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConvTranspose1D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConvTranspose2D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kConvTranspose3D;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kFanIn;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kFanOut;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kGELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kGRU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kLSTM;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kLeakyReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kLinear;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kMax;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kMean;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kMish;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kNearest;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kNearestExact;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kNone;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kRNN_RELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kRNN_TANH;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kReflect;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kReflection;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kReplicate;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kSame;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kSiLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kSigmoid;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kSum;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kTanh;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kTrilinear;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kValid;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::kZeros;  // Ramet's class: include the door, no forward declaration
using ::ramet::enumtype::reduction_get_enum;
}  // namespace torch::enumtype

namespace at::indexing {
using ::ramet::indexing::Ellipsis;
using ::ramet::indexing::EllipsisIndexType;  // Ramet's class: include the door, no forward declaration
using ::ramet::indexing::None;
using ::ramet::indexing::Slice;  // Ramet's class: include the door, no forward declaration
using ::ramet::indexing::TensorIndex;  // Ramet's class: include the door, no forward declaration
using ::ramet::indexing::TensorIndexType;  // Ramet's class: include the door, no forward declaration
}  // namespace at::indexing

namespace torch::linalg {
using ::ramet::linalg::cholesky;
using ::ramet::linalg::det;
using ::ramet::linalg::eigh;
using ::ramet::linalg::eigvalsh;
using ::ramet::linalg::inv;
using ::ramet::linalg::matrix_power;
using ::ramet::linalg::matrix_rank;
using ::ramet::linalg::pinv;
using ::ramet::linalg::qr;
using ::ramet::linalg::slogdet;
using ::ramet::linalg::solve;
using ::ramet::linalg::solve_triangular;
using ::ramet::linalg::svd;
using ::ramet::linalg::svdvals;
}  // namespace torch::linalg

namespace torch::mps {
using ::ramet::mps::is_available;
}  // namespace torch::mps

namespace torch::nn {
using ::ramet::nn::AdaptiveAvgPool1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool1dOptions;
using ::ramet::nn::AdaptiveAvgPool2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool2dOptions;
using ::ramet::nn::AdaptiveAvgPool3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPool3dOptions;
using ::ramet::nn::AdaptiveAvgPoolImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveAvgPoolOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool1dOptions;
using ::ramet::nn::AdaptiveMaxPool2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool2dOptions;
using ::ramet::nn::AdaptiveMaxPool3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPool3dOptions;
using ::ramet::nn::AdaptiveMaxPoolImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AdaptiveMaxPoolOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AlphaDropout;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AlphaDropoutImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AlphaDropoutOptions;
using ::ramet::nn::AnyModule;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AnyValue;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool1dOptions;
using ::ramet::nn::AvgPool2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool2dOptions;
using ::ramet::nn::AvgPool3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPool3dOptions;
using ::ramet::nn::AvgPoolImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::AvgPoolOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCELoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCELossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCELossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCEWithLogitsLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCEWithLogitsLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BCEWithLogitsLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm1dOptions;
using ::ramet::nn::BatchNorm2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm2dOptions;
using ::ramet::nn::BatchNorm3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNorm3dOptions;
using ::ramet::nn::BatchNormImplBase;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Bilinear;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BilinearImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BilinearOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CELUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CELUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CTCLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CTCLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CTCLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Cloneable;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad1dOptions;
using ::ramet::nn::ConstantPad2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad2dOptions;
using ::ramet::nn::ConstantPad3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPad3dOptions;
using ::ramet::nn::ConstantPadImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConstantPadOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv1dOptions;
using ::ramet::nn::Conv2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv2dOptions;
using ::ramet::nn::Conv3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Conv3dOptions;
using ::ramet::nn::ConvNdImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose1dOptions;
using ::ramet::nn::ConvTranspose2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose2dOptions;
using ::ramet::nn::ConvTranspose3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTranspose3dOptions;
using ::ramet::nn::ConvTransposeNdImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ConvTransposeOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineEmbeddingLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineEmbeddingLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineEmbeddingLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineSimilarity;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineSimilarityImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CosineSimilarityOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CrossEntropyLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CrossEntropyLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::CrossEntropyLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout2dOptions;
using ::ramet::nn::Dropout3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Dropout3dOptions;
using ::ramet::nn::DropoutImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::DropoutOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ELUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ELUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Embedding;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingBag;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingBagFromPretrainedOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingBagImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingBagMode;
using ::ramet::nn::EmbeddingBagOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingFromPretrainedOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::EmbeddingOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FeatureAlphaDropout;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FeatureAlphaDropoutImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FeatureAlphaDropoutOptions;
using ::ramet::nn::Flatten;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FlattenImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FlattenOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Fold;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FoldImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FoldOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Functional;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FunctionalImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GELUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GELUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GLUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRUCell;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRUCellImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRUCellOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GRUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GroupNorm;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GroupNormImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::GroupNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Hardshrink;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HardshrinkImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HardshrinkOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Hardtanh;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HardtanhImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HardtanhOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HingeEmbeddingLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HingeEmbeddingLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HingeEmbeddingLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HuberLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HuberLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::HuberLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Identity;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::IdentityImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm1dOptions;
using ::ramet::nn::InstanceNorm2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm2dOptions;
using ::ramet::nn::InstanceNorm3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNorm3dOptions;
using ::ramet::nn::InstanceNormImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::InstanceNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::KLDivLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::KLDivLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::KLDivLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::L1Loss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::L1LossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::L1LossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTM;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTMCell;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTMCellImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTMCellOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTMImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LSTMOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LayerNorm;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LayerNormImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LayerNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LeakyReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LeakyReLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LeakyReLUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Linear;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LinearImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LinearOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LocalResponseNorm;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LocalResponseNormImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LocalResponseNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LogSigmoid;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LogSigmoidImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LogSoftmax;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LogSoftmaxImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::LogSoftmaxOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MSELoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MSELossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MSELossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MarginRankingLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MarginRankingLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MarginRankingLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool1dOptions;
using ::ramet::nn::MaxPool2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool2dOptions;
using ::ramet::nn::MaxPool3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPool3dOptions;
using ::ramet::nn::MaxPoolImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MaxPoolOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Mish;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MishImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Module;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ModuleDict;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ModuleDictImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ModuleHolder;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ModuleList;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ModuleListImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelMarginLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelMarginLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelMarginLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelSoftMarginLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelSoftMarginLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiLabelSoftMarginLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiMarginLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiMarginLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiMarginLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiheadAttention;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiheadAttentionImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::MultiheadAttentionOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::NLLLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::NLLLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::NLLLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::NamedAnyModule;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PReLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PReLUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PairwiseDistance;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PairwiseDistanceImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PairwiseDistanceOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ParameterDict;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ParameterDictImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ParameterList;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ParameterListImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelShuffle;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelShuffleImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelShuffleOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelUnshuffle;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelUnshuffleImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PixelUnshuffleOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PoissonNLLLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PoissonNLLLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::PoissonNLLLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNN;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNNCell;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNNCellImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNNCellOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNNImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RNNOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RReLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RReLUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLU6;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLU6Impl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLU6Options;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReLUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad1dOptions;
using ::ramet::nn::ReflectionPad2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad2dOptions;
using ::ramet::nn::ReflectionPad3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPad3dOptions;
using ::ramet::nn::ReflectionPadImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReflectionPadOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad1dOptions;
using ::ramet::nn::ReplicationPad2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad2dOptions;
using ::ramet::nn::ReplicationPad3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPad3dOptions;
using ::ramet::nn::ReplicationPadImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicationPadOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SELU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SELUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SELUOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Sequential;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SequentialImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SiLU;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SiLUImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Sigmoid;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SigmoidImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SmoothL1Loss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SmoothL1LossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SmoothL1LossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftMarginLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftMarginLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftMarginLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softmax;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softmax2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softmax2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftmaxImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftmaxOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softmin;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftminImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftminOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softplus;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftplusImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftplusOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softshrink;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftshrinkImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftshrinkOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Softsign;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::SoftsignImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Tanh;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TanhImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Tanhshrink;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TanhshrinkImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Threshold;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ThresholdImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ThresholdOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Transformer;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoder;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoderImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoderLayer;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoderLayerImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoderLayerOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerDecoderOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoder;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoderImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoderLayer;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoderLayerImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoderLayerOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerEncoderOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TransformerOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginWithDistanceLoss;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginWithDistanceLossImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::TripletMarginWithDistanceLossOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Unflatten;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UnflattenImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UnflattenOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Unfold;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UnfoldImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UnfoldOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::Upsample;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UpsampleImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::UpsampleOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad1d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad1dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad1dOptions;
using ::ramet::nn::ZeroPad2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad2dOptions;
using ::ramet::nn::ZeroPad3d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad3dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPad3dOptions;
using ::ramet::nn::ZeroPadImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ZeroPadOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::activation_t;
}  // namespace torch::nn

namespace torch::nn::functional {
using ::ramet::nn::functional::AdaptiveAvgPool1dFuncOptions;
using ::ramet::nn::functional::AdaptiveAvgPool2dFuncOptions;
using ::ramet::nn::functional::AdaptiveAvgPool3dFuncOptions;
using ::ramet::nn::functional::AdaptiveMaxPool1dFuncOptions;
using ::ramet::nn::functional::AdaptiveMaxPool2dFuncOptions;
using ::ramet::nn::functional::AdaptiveMaxPool3dFuncOptions;
using ::ramet::nn::functional::AlphaDropoutFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::AvgPool1dFuncOptions;
using ::ramet::nn::functional::AvgPool2dFuncOptions;
using ::ramet::nn::functional::AvgPool3dFuncOptions;
using ::ramet::nn::functional::BatchNormFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::BinaryCrossEntropyFuncOptions;
using ::ramet::nn::functional::BinaryCrossEntropyWithLogitsFuncOptions;
using ::ramet::nn::functional::CELUFuncOptions;
using ::ramet::nn::functional::CTCLossFuncOptions;
using ::ramet::nn::functional::Conv1dFuncOptions;
using ::ramet::nn::functional::Conv2dFuncOptions;
using ::ramet::nn::functional::Conv3dFuncOptions;
using ::ramet::nn::functional::ConvFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::ConvTranspose1dFuncOptions;
using ::ramet::nn::functional::ConvTranspose2dFuncOptions;
using ::ramet::nn::functional::ConvTranspose3dFuncOptions;
using ::ramet::nn::functional::ConvTransposeFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::CosineEmbeddingLossFuncOptions;
using ::ramet::nn::functional::CosineSimilarityFuncOptions;
using ::ramet::nn::functional::CrossEntropyFuncOptions;
using ::ramet::nn::functional::Dropout2dFuncOptions;
using ::ramet::nn::functional::Dropout3dFuncOptions;
using ::ramet::nn::functional::DropoutFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::ELUFuncOptions;
using ::ramet::nn::functional::EmbeddingBagFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::EmbeddingFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::FeatureAlphaDropoutFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::FoldFuncOptions;
using ::ramet::nn::functional::GELUFuncOptions;
using ::ramet::nn::functional::GLUFuncOptions;
using ::ramet::nn::functional::GroupNormFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::GumbelSoftmaxFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::HardshrinkFuncOptions;
using ::ramet::nn::functional::HardtanhFuncOptions;
using ::ramet::nn::functional::HingeEmbeddingLossFuncOptions;
using ::ramet::nn::functional::HuberLossFuncOptions;
using ::ramet::nn::functional::InstanceNormFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::InterpolateFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::KLDivFuncOptions;
using ::ramet::nn::functional::L1LossFuncOptions;
using ::ramet::nn::functional::LayerNormFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::LeakyReLUFuncOptions;
using ::ramet::nn::functional::LocalResponseNormFuncOptions;
using ::ramet::nn::functional::LogSoftmaxFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::MSELossFuncOptions;
using ::ramet::nn::functional::MarginRankingLossFuncOptions;
using ::ramet::nn::functional::MaxPool1dFuncOptions;
using ::ramet::nn::functional::MaxPool2dFuncOptions;
using ::ramet::nn::functional::MaxPool3dFuncOptions;
using ::ramet::nn::functional::MultiMarginLossFuncOptions;
using ::ramet::nn::functional::MultiheadAttentionForwardFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::MultilabelMarginLossFuncOptions;
using ::ramet::nn::functional::MultilabelSoftMarginLossFuncOptions;
using ::ramet::nn::functional::NLLLossFuncOptions;
using ::ramet::nn::functional::NormalizeFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::PadFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::PairwiseDistanceFuncOptions;
using ::ramet::nn::functional::PixelShuffleFuncOptions;
using ::ramet::nn::functional::PixelUnshuffleFuncOptions;
using ::ramet::nn::functional::PoissonNLLLossFuncOptions;
using ::ramet::nn::functional::RReLUFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::ReLU6FuncOptions;
using ::ramet::nn::functional::ReLUFuncOptions;
using ::ramet::nn::functional::SELUFuncOptions;
using ::ramet::nn::functional::SmoothL1LossFuncOptions;
using ::ramet::nn::functional::SoftMarginLossFuncOptions;
using ::ramet::nn::functional::SoftmaxFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::SoftminFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::SoftplusFuncOptions;
using ::ramet::nn::functional::SoftshrinkFuncOptions;
using ::ramet::nn::functional::ThresholdFuncOptions;
using ::ramet::nn::functional::TripletMarginLossFuncOptions;
using ::ramet::nn::functional::TripletMarginWithDistanceLossFuncOptions;
using ::ramet::nn::functional::UnfoldFuncOptions;
using ::ramet::nn::functional::adaptive_avg_pool1d;
using ::ramet::nn::functional::adaptive_avg_pool2d;
using ::ramet::nn::functional::adaptive_avg_pool3d;
using ::ramet::nn::functional::adaptive_max_pool1d;
using ::ramet::nn::functional::adaptive_max_pool1d_with_indices;
using ::ramet::nn::functional::adaptive_max_pool2d;
using ::ramet::nn::functional::adaptive_max_pool2d_with_indices;
using ::ramet::nn::functional::adaptive_max_pool3d;
using ::ramet::nn::functional::adaptive_max_pool3d_with_indices;
using ::ramet::nn::functional::alpha_dropout;
using ::ramet::nn::functional::avg_pool1d;
using ::ramet::nn::functional::avg_pool2d;
using ::ramet::nn::functional::avg_pool3d;
using ::ramet::nn::functional::batch_norm;
using ::ramet::nn::functional::bilinear;
using ::ramet::nn::functional::binary_cross_entropy;
using ::ramet::nn::functional::binary_cross_entropy_with_logits;
using ::ramet::nn::functional::celu;
using ::ramet::nn::functional::conv1d;
using ::ramet::nn::functional::conv2d;
using ::ramet::nn::functional::conv3d;
using ::ramet::nn::functional::conv_transpose1d;
using ::ramet::nn::functional::conv_transpose2d;
using ::ramet::nn::functional::conv_transpose3d;
using ::ramet::nn::functional::cosine_embedding_loss;
using ::ramet::nn::functional::cosine_similarity;
using ::ramet::nn::functional::cross_entropy;
using ::ramet::nn::functional::ctc_loss;
using ::ramet::nn::functional::dropout;
using ::ramet::nn::functional::dropout2d;
using ::ramet::nn::functional::dropout3d;
using ::ramet::nn::functional::elu;
using ::ramet::nn::functional::embedding;
using ::ramet::nn::functional::embedding_bag;
using ::ramet::nn::functional::feature_alpha_dropout;
using ::ramet::nn::functional::fold;
using ::ramet::nn::functional::gelu;
using ::ramet::nn::functional::glu;
using ::ramet::nn::functional::group_norm;
using ::ramet::nn::functional::gumbel_softmax;
using ::ramet::nn::functional::hardshrink;
using ::ramet::nn::functional::hardtanh;
using ::ramet::nn::functional::hinge_embedding_loss;
using ::ramet::nn::functional::huber_loss;
using ::ramet::nn::functional::instance_norm;
using ::ramet::nn::functional::interpolate;
using ::ramet::nn::functional::kl_div;
using ::ramet::nn::functional::l1_loss;
using ::ramet::nn::functional::layer_norm;
using ::ramet::nn::functional::leaky_relu;
using ::ramet::nn::functional::linear;
using ::ramet::nn::functional::local_response_norm;
using ::ramet::nn::functional::log_softmax;
using ::ramet::nn::functional::logsigmoid;
using ::ramet::nn::functional::margin_ranking_loss;
using ::ramet::nn::functional::max_pool1d;
using ::ramet::nn::functional::max_pool1d_with_indices;
using ::ramet::nn::functional::max_pool2d;
using ::ramet::nn::functional::max_pool2d_with_indices;
using ::ramet::nn::functional::max_pool3d;
using ::ramet::nn::functional::max_pool3d_with_indices;
using ::ramet::nn::functional::mish;
using ::ramet::nn::functional::mse_loss;
using ::ramet::nn::functional::multi_head_attention_forward;
using ::ramet::nn::functional::multi_margin_loss;
using ::ramet::nn::functional::multilabel_margin_loss;
using ::ramet::nn::functional::multilabel_soft_margin_loss;
using ::ramet::nn::functional::nll_loss;
using ::ramet::nn::functional::normalize;
using ::ramet::nn::functional::one_hot;
using ::ramet::nn::functional::pad;
using ::ramet::nn::functional::pairwise_distance;
using ::ramet::nn::functional::pdist;
using ::ramet::nn::functional::pixel_shuffle;
using ::ramet::nn::functional::pixel_unshuffle;
using ::ramet::nn::functional::poisson_nll_loss;
using ::ramet::nn::functional::prelu;
using ::ramet::nn::functional::relu;
using ::ramet::nn::functional::relu6;
using ::ramet::nn::functional::rrelu;
using ::ramet::nn::functional::selu;
using ::ramet::nn::functional::silu;
using ::ramet::nn::functional::smooth_l1_loss;
using ::ramet::nn::functional::soft_margin_loss;
using ::ramet::nn::functional::softmax;
using ::ramet::nn::functional::softmin;
using ::ramet::nn::functional::softplus;
using ::ramet::nn::functional::softshrink;
using ::ramet::nn::functional::softsign;
using ::ramet::nn::functional::tanhshrink;
using ::ramet::nn::functional::threshold;
using ::ramet::nn::functional::triplet_margin_loss;
using ::ramet::nn::functional::triplet_margin_with_distance_loss;
using ::ramet::nn::functional::unfold;
}  // namespace torch::nn::functional

namespace torch::nn::init {
using ::ramet::nn::init::FanModeType;
using ::ramet::nn::init::NonlinearityType;
using ::ramet::nn::init::_calculate_fan_in_and_fan_out;
using ::ramet::nn::init::calculate_gain;
using ::ramet::nn::init::constant_;
using ::ramet::nn::init::dirac_;
using ::ramet::nn::init::eye_;
using ::ramet::nn::init::kaiming_normal_;
using ::ramet::nn::init::kaiming_uniform_;
using ::ramet::nn::init::normal_;
using ::ramet::nn::init::ones_;
using ::ramet::nn::init::orthogonal_;
using ::ramet::nn::init::sparse_;
using ::ramet::nn::init::uniform_;
using ::ramet::nn::init::xavier_normal_;
using ::ramet::nn::init::xavier_uniform_;
using ::ramet::nn::init::zeros_;
}  // namespace torch::nn::init

namespace torch::nn::parallel {
using ::ramet::nn::parallel::data_parallel;
using ::ramet::nn::parallel::parallel_apply;
using ::ramet::nn::parallel::replicate;
using ::ramet::nn::parallel::replicate_grad_edges;
}  // namespace torch::nn::parallel

namespace torch::nn::utils {
using ::ramet::nn::utils::clip_grad_norm_;
using ::ramet::nn::utils::clip_grad_value_;
using ::ramet::nn::utils::parameters_to_vector;
using ::ramet::nn::utils::vector_to_parameters;
}  // namespace torch::nn::utils

namespace torch::nn::utils::rnn {
using ::ramet::nn::utils::rnn::PackedSequence;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::utils::rnn::invert_permutation;
using ::ramet::nn::utils::rnn::pack_padded_sequence;
using ::ramet::nn::utils::rnn::pack_sequence;
using ::ramet::nn::utils::rnn::pad_packed_sequence;
using ::ramet::nn::utils::rnn::pad_sequence;
}  // namespace torch::nn::utils::rnn

namespace torch::optim {
using ::ramet::optim::Adagrad;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdagradOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdagradParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Adam;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamW;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamWOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamWParamState;
using ::ramet::optim::LBFGS;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LBFGSOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LBFGSParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LRScheduler;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Optimizer;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OptimizerCloneableOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OptimizerCloneableParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OptimizerOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OptimizerParamGroup;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OptimizerParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RMSprop;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RMSpropOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RMSpropParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::ReduceLROnPlateauScheduler;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::SGD;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::SGDOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::SGDParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::StepLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::serialize;
}  // namespace torch::optim

namespace torch::serialize {
using ::ramet::serialize::InputArchive;  // Ramet's class: include the door, no forward declaration
using ::ramet::serialize::OutputArchive;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::serialize

namespace torch::xpu {
using ::ramet::xpu::is_available;
}  // namespace torch::xpu
