// Operators of layers, reductions and indices that have other names, orders or arguments in PyTorch
// than in a row.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// As traces have it of layers with padding="same".
Tensor convolve_by_name(const Call& a) {
  const Tensor& weight = a.tensor(1);
  RAMET_CHECK(weight.dim() >= 3 && weight.dim() <= 5, "_convolution_mode", "weight: got ",
              weight.dim(), " dimensions, expected 3 to 5");
  return detail::conv_named(static_cast<int>(weight.dim()) - 2, a.tensor(0), weight,
                            a.may_tensor(2), a.integers(3), a.text(4), a.integers(5), a.integer(6));
}

// dim, correction or unbiased, keepdim of var() and its like.
#define RAMET_MOMENT(name, type)                                                                \
  RAMET_LINE("aten::" #name "(Tensor self, bool unbiased=True) -> " type,                       \
             name(a.tensor(0), std::nullopt, Scalar(a.truth(1) ? 1 : 0))),                      \
      RAMET_LINE("aten::" #name                                                                 \
                 ".dim(Tensor self, int[1]? dim, bool unbiased=True, "                          \
                 "bool keepdim=False) -> " type,                                                \
                 name(a.tensor(0), a.may_integers(1), Scalar(a.truth(2) ? 1 : 0), a.truth(3))), \
      RAMET_LINE("aten::" #name                                                                 \
                 ".correction(Tensor self, int[1]? dim=None, *, "                               \
                 "Scalar? correction=None, bool keepdim=False) -> " type,                       \
                 name(a.tensor(0), a.may_integers(1), a.may_number(2), a.truth(3))),

#define RAMET_DROPOUT(name)                                                                       \
  RAMET_FUNCTION_LINE("aten::" #name "(Tensor input, float p, bool train) -> Tensor", name),      \
      RAMET_FUNCTION_LINE("aten::" #name "_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", \
                          name##_),

#define RAMET_CONV(n, ones, zeros)                                                               \
  RAMET_LINE("aten::conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n         \
             "] stride=" ones ", int[" #n "] padding=" zeros ", int[" #n "] dilation=" ones      \
             ", int groups=1) -> Tensor",                                                        \
             conv##n##d(a.tensor(0), a.tensor(1), a.may_tensor(2), a.integers(3), a.integers(4), \
                        a.integers(5), a.integer(6))),                                           \
      RAMET_LINE("aten::conv" #n                                                                 \
                 "d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[" #n             \
                 "] stride=" ones ", str padding=\"valid\", int[" #n "] dilation=" ones          \
                 ", int groups=1) -> Tensor",                                                    \
                 conv##n##d(a.tensor(0), a.tensor(1), a.may_tensor(2), a.integers(3), a.text(4), \
                            a.integers(5), a.integer(6))),

// A packed sequence: its rows in the order of time, and how many sequences each time has.
IValue pack(const Call& a) {
  const Tensor padded = a.truth(2) ? a.tensor(0).transpose(0, 1) : a.tensor(0);
  const Tensor lengths = a.tensor(1).to(TensorOptions(kLong).device(Device(kCPU, 0))).contiguous();
  RAMET_CHECK(padded.dim() >= 2 && lengths.dim() == 1 && lengths.numel() == padded.size(1) &&
                  lengths.numel() > 0,
              "_pack_padded_sequence", "got an input of ", padded.sizes(), " and lengths of ",
              lengths.sizes(), ", expected a length for each of the sequences, at least one");
  const int64_t* const length = lengths.data_ptr<int64_t>();
  const int64_t batch = lengths.numel();
  for (int64_t i = 0; i < batch; ++i)
    RAMET_CHECK(
        length[i] > 0 && length[i] <= padded.size(0) && (i == 0 || length[i] <= length[i - 1]),
        "_pack_padded_sequence", "lengths: got ", length[i], " at place ", i,
        ", expected from 1 to ", i == 0 ? padded.size(0) : length[i - 1], ", longest first");
  std::vector<Tensor> parts;
  Tensor sizes = empty({length[0]}, TensorOptions(kLong).device(Device(kCPU, 0)));
  int64_t rows = batch, from = 0;
  for (int64_t time = 0; time < length[0]; ++time) {
    while (length[rows - 1] <= time) --rows;
    sizes.data_ptr<int64_t>()[time] = rows;
    // Times with as many sequences are one part.
    if (time + 1 < length[0] && length[rows - 1] > time + 1) continue;
    Tensor part = padded.narrow(0, from, time + 1 - from).narrow(1, 0, rows);
    parts.push_back(part.flatten(0, 1));
    from = time + 1;
  }
  return result(std::vector<IValue>{cat(parts), sizes});
}

IValue unpack(const Call& a) {
  const Tensor& data = a.tensor(0);
  const Tensor sizes = a.tensor(1).to(TensorOptions(kLong).device(Device(kCPU, 0))).contiguous();
  RAMET_CHECK(data.dim() >= 1 && sizes.dim() == 1 && sizes.numel() > 0, "_pad_packed_sequence",
              "got data of ", data.sizes(), " and batch sizes of ", sizes.sizes(),
              ", expected rows and a list of sizes");
  const int64_t* const count = sizes.data_ptr<int64_t>();
  const int64_t times = sizes.numel(), batch = count[0];
  int64_t rows = 0;
  for (int64_t i = 0; i < times; ++i) {
    RAMET_CHECK(count[i] > 0 && (i == 0 || count[i] <= count[i - 1]) && count[i] <= data.size(0),
                "_pad_packed_sequence", "batch sizes: got ", count[i], " at time ", i,
                ", expected positive numbers that never grow");
    rows += count[i];
  }
  RAMET_CHECK(rows == data.size(0), "_pad_packed_sequence", "batch sizes: got a sum of ", rows,
              ", expected the number of rows: ", data.size(0));
  const int64_t total = a.integer(4);
  RAMET_CHECK(total <= 0 || total >= times, "_pad_packed_sequence", "total_length: got ", total,
              ", expected at least the longest sequence: ", times);
  const int64_t longest = std::max(total, times);
  Tensor lengths = empty({batch}, TensorOptions(kLong).device(Device(kCPU, 0)));
  std::vector<Tensor> sequences;
  // Sequence i has a row at each time that has more than i sequences.
  std::vector<int64_t> starts(static_cast<size_t>(times), 0);
  for (int64_t t = 1; t < times; ++t)
    starts[static_cast<size_t>(t)] = starts[static_cast<size_t>(t - 1)] + count[t - 1];
  // A tensor's memory: its size is checked.
  const Tensor index = full({longest, batch}, rows, TensorOptions(kLong).device(Device(kCPU, 0)));
  auto* const places = index.data_ptr<int64_t>();
  for (int64_t i = 0; i < batch; ++i) {
    int64_t t = 0;
    for (; t < times && count[t] > i; ++t)
      places[t * batch + i] = starts[static_cast<size_t>(t)] + i;
    lengths.data_ptr<int64_t>()[i] = t;
  }
  std::vector<int64_t> row(data.sizes().begin(), data.sizes().end());
  row[0] = 1;
  Tensor padded = cat({data, full(row, a.number(3), data.options())})
                      .index_select(0, index.view({longest * batch}).to(data.device()));
  row.erase(row.begin());
  row.insert(row.begin(), {longest, batch});
  padded = padded.view(row);
  return result(std::vector<IValue>{a.truth(2) ? padded.transpose(0, 1) : padded, lengths});
}

const Line kLayers[] = {
    RAMET_LINE("aten::_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, "
               "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, "
               "bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
               convolution(a.tensor(0), a.tensor(1), a.may_tensor(2), a.integers(3), a.integers(4),
                           a.integers(5), a.truth(6), a.integers(7), a.integer(8))),
    RAMET_LINE("aten::_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, "
               "int[] stride, int[] padding, int[] dilation, bool transposed, "
               "int[] output_padding, int groups, bool benchmark, bool deterministic, "
               "bool cudnn_enabled) -> Tensor",
               convolution(a.tensor(0), a.tensor(1), a.may_tensor(2), a.integers(3), a.integers(4),
                           a.integers(5), a.truth(6), a.integers(7), a.integer(8))),
    RAMET_LINE("aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, "
               "str padding, int[] dilation, int groups) -> Tensor",
               convolve_by_name(a)),
    RAMET_CONV(1, "[1]", "[0]") RAMET_CONV(2, "[1, 1]", "[0, 0]")
        RAMET_CONV(3, "[1, 1, 1]", "[0, 0, 0]")
            RAMET_FUNCTION_LINE("aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, "
                                "Tensor? running_mean, Tensor? running_var, bool training, "
                                "float momentum, float eps, bool cudnn_enabled) -> Tensor",
                                batch_norm),
    RAMET_FUNCTION_LINE("aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, "
                        "Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
                        "float momentum, float eps, bool cudnn_enabled) -> Tensor",
                        instance_norm),
    RAMET_FUNCTION_LINE("aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, "
                        "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
                        embedding),
    RAMET_LINE("aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, "
               "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
               "Tensor? per_sample_weights=None, bool include_last_offset=False) -> "
               "(Tensor, Tensor, Tensor, Tensor)",
               embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2), a.truth(3), a.integer(4),
                             a.truth(5), a.may_tensor(6), a.truth(7))),
    RAMET_LINE("aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, "
               "bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
               "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
               embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2), a.truth(3), a.integer(4),
                             a.truth(5), a.may_tensor(6), a.truth(7), a.may_integer(8))),
    RAMET_FUNCTION_LINE("aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, "
                        "float norm_type) -> Tensor(a!)",
                        embedding_renorm_),
    RAMET_DROPOUT(dropout) RAMET_DROPOUT(feature_dropout) RAMET_DROPOUT(alpha_dropout)
        RAMET_DROPOUT(feature_alpha_dropout) RAMET_FUNCTION_LINE(
            "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], "
            "int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
            max_pool1d),
    RAMET_FUNCTION_LINE("aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, "
                        "int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], "
                        "bool ceil_mode=False) -> (Tensor, Tensor)",
                        max_pool1d_with_indices),
    RAMET_FUNCTION_LINE("aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], "
                        "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
                        max_pool2d),
    RAMET_FUNCTION_LINE("aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], "
                        "int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) "
                        "-> Tensor",
                        avg_pool1d),
    RAMET_FUNCTION_LINE("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
                        adaptive_avg_pool1d),
    RAMET_FUNCTION_LINE(
        "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool1d),
    RAMET_FUNCTION_LINE("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", gelu),
    RAMET_LINE("aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
               leaky_relu_(a.written(0), a.number(1))),
    RAMET_FUNCTION_LINE("aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
                        constant_pad_nd),
    RAMET_LINE("aten::pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None) -> "
               "Tensor",
               pad(a.tensor(0), a.integers(1), a.text(2), a.may_real(3))),
    RAMET_FUNCTION_LINE("aten::pad_sequence(Tensor[] sequences, bool batch_first=False, "
                        "float padding_value=0., str padding_side=\"right\") -> Tensor",
                        pad_sequence),
    RAMET_LINE("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> "
               "(Tensor, Tensor)",
               pack(a)),
    RAMET_LINE("aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, "
               "Scalar padding_value, int total_length) -> (Tensor, Tensor)",
               unpack(a)),
    RAMET_MOMENT(var, "Tensor") RAMET_MOMENT(std, "Tensor")
        RAMET_MOMENT(var_mean, "(Tensor, Tensor)") RAMET_MOMENT(std_mean, "(Tensor, Tensor)")
            RAMET_LINE("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                       index(a.tensor(0), a.optional_tensors(1))),
    RAMET_LINE("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor",
               index(a.tensor(0), a.optional_tensors(1))),
    RAMET_LINE("aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor",
               index_put(a.tensor(0), a.optional_tensors(1), a.tensor(2), a.truth(3))),
    RAMET_LINE("aten::index_put(Tensor self, Tensor?[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor",
               index_put(a.tensor(0), a.optional_tensors(1), a.tensor(2), a.truth(3))),
    RAMET_LINE("aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor(a!)",
               index_put_(a.written(0), a.optional_tensors(1), a.tensor(2), a.truth(3))),
    RAMET_LINE("aten::index_put_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor(a!)",
               index_put_(a.written(0), a.optional_tensors(1), a.tensor(2), a.truth(3))),
    RAMET_LINE("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
               where(a.tensor(0), a.tensor(1), a.tensor(2))),
    RAMET_LINE("aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
               where(a.tensor(0), a.tensor(1), a.number(2))),
    RAMET_LINE("aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
               where(a.tensor(0), a.number(1), a.tensor(2))),
    RAMET_LINE("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
               where(a.tensor(0), a.number(1), a.number(2))),
    RAMET_LINE("aten::where(Tensor condition) -> Tensor[]", where(a.tensor(0))),
    RAMET_LINE("aten::repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
               repeat_interleave(a.tensor(0), a.may_integer(1))),
    RAMET_LINE("aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
               "int? output_size=None) -> Tensor",
               repeat_interleave(a.tensor(0), a.tensor(1), a.may_integer(2), a.may_integer(3))),
    RAMET_LINE("aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, "
               "int? output_size=None) -> Tensor",
               repeat_interleave(a.tensor(0), a.integer(1), a.may_integer(2), a.may_integer(3))),
    RAMET_LINE("aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
               rsub(a.tensor(0), a.tensor(1), a.number(2))),
    RAMET_LINE("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
               rsub(a.tensor(0), a.number(1), a.number(2))),
    RAMET_FUNCTION_LINE("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., "
                        "float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor",
                        pairwise_distance),
    RAMET_FUNCTION_LINE("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
                        "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
                        _unique2),
    RAMET_FUNCTION_LINE("aten::unique_dim(Tensor self, int dim, bool sorted=True, "
                        "bool return_inverse=False, bool return_counts=False) -> "
                        "(Tensor, Tensor, Tensor)",
                        unique_dim),
    RAMET_FUNCTION_LINE("aten::unique_consecutive(Tensor self, bool return_inverse=False, "
                        "bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
                        unique_consecutive),
    RAMET_LINE("aten::polygamma(int n, Tensor self) -> Tensor",
               polygamma(a.integer(0), a.tensor(1))),
    RAMET_LINE("aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
               linalg_matrix_rank(a.tensor(0), a.real(1), a.truth(2))),
    RAMET_LINE("aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, "
               "bool hermitian=False) -> Tensor",
               linalg_matrix_rank(a.tensor(0), a.tensor(1), a.truth(2))),
    RAMET_LINE("aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, "
               "Tensor? rtol=None, bool hermitian=False) -> Tensor",
               linalg_matrix_rank(a.tensor(0), a.may_tensor(1), a.may_tensor(2), a.truth(3))),
    RAMET_LINE("aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, "
               "float? rtol=None, bool hermitian=False) -> Tensor",
               linalg_matrix_rank(a.tensor(0), a.may_real(1), a.may_real(2), a.truth(3))),
    RAMET_LINE("aten::abs(Tensor self) -> Tensor", abs(a.tensor(0))),
    RAMET_LINE("prim::abs(Tensor x) -> Tensor", abs(a.tensor(0))),
    RAMET_LINE("aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, "
               "int step=1) -> Tensor(a)",
               slice(a.tensor(0), a.integer(1), a.may_integer(2), a.may_integer(3), a.integer(4))),
    RAMET_LINE("aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
               select(a.tensor(0), a.integer(1), a.integer(2))),
    RAMET_LINE("aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor",
               bitwise_and(a.tensor(0), a.tensor(1))),
    RAMET_LINE("aten::__and__.Scalar(Tensor self, Scalar other) -> Tensor",
               bitwise_and(a.tensor(0), a.number(1))),
    RAMET_LINE("aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor",
               bitwise_or(a.tensor(0), a.tensor(1))),
    RAMET_LINE("aten::__or__.Scalar(Tensor self, Scalar other) -> Tensor",
               bitwise_or(a.tensor(0), a.number(1))),
    RAMET_LINE("aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
               bitwise_xor(a.tensor(0), a.tensor(1))),
    RAMET_LINE("aten::__xor__.Scalar(Tensor self, Scalar other) -> Tensor",
               bitwise_xor(a.tensor(0), a.number(1))),
};

}  // namespace

Lines lines_of_layers() { return kLayers; }

}  // namespace ramet::script
