// Layers with their statistics, packed sequences, and tensors of numbers, for written code. They
// are what autograd/schema has for these operators.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {

std::vector<Helper> helpers_of_layers() {
  return {
      {"statistics", R"(/// The dimensions from `first` on.
inline std::vector<int64_t> dims_from(int64_t first, int64_t end) {
  std::vector<int64_t> dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}
/// Mean and 1 / standard deviation along dimensions, without history.
inline std::pair<ramet::Tensor, ramet::Tensor> statistics(const ramet::Tensor& x,
                                                          const std::vector<int64_t>& dims,
                                                          double eps, bool keepdim) {
  const ramet::NoGradGuard no_grad;
  const bool small = x.scalar_type() == ramet::kHalf || x.scalar_type() == ramet::kBFloat16;
  const ramet::Tensor values = small ? x.detach().to(ramet::kFloat) : x.detach();
  const auto [variance, mean] = ramet::var_mean(values, dims, ramet::Scalar(0), keepdim);
  return {mean, ramet::rsqrt(ramet::add(variance, eps))};
}
)"},
      {"norm_of_layer", R"(/// aten::native_layer_norm
inline std::tuple<ramet::Tensor, ramet::Tensor, ramet::Tensor> norm_of_layer(
    const ramet::Tensor& x, ramet::IntArrayRef shape, const std::optional<ramet::Tensor>& weight,
    const std::optional<ramet::Tensor>& bias, double eps) {
  const ramet::Tensor y = ramet::layer_norm(x, shape, weight, bias, eps);
  const auto [mean, rstd] = python::statistics(
      x, dims_from(x.dim() - static_cast<int64_t>(shape.size()), x.dim()), eps, true);
  return {y, mean, rstd};
}
)"},
      {"norm_of_groups", R"(/// aten::native_group_norm
inline std::tuple<ramet::Tensor, ramet::Tensor, ramet::Tensor> norm_of_groups(
    const ramet::Tensor& x, const std::optional<ramet::Tensor>& weight,
    const std::optional<ramet::Tensor>& bias, int64_t batch, int64_t groups, double eps) {
  const ramet::Tensor y = ramet::group_norm(x, groups, weight, bias, eps);
  const auto [mean, rstd] =
      python::statistics(x.detach().reshape({batch, groups, -1}), {2}, eps, false);
  return {y, mean, rstd};
}
)"},
      {"norm_of_batch",
       R"(/// aten::native_batch_norm; in evaluation mode without the batch's statistics.
inline std::tuple<ramet::Tensor, ramet::Tensor, ramet::Tensor> norm_of_batch(
    const ramet::Tensor& x, const std::optional<ramet::Tensor>& weight,
    const std::optional<ramet::Tensor>& bias, const std::optional<ramet::Tensor>& mean,
    const std::optional<ramet::Tensor>& variance, bool training, double momentum, double eps) {
  const ramet::Tensor y =
      ramet::batch_norm(x, weight, bias, mean, variance, training, momentum, eps, false);
  if (!training)
    return {y, ramet::empty({0}, x.options()), ramet::empty({0}, x.options())};
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  const auto [batch_mean, rstd] = python::statistics(x, dims, eps, false);
  return {y, batch_mean, rstd};
}
)"},
      {"functional_norm_of_batch",
       R"(/// aten::_native_batch_norm_legit_functional: new running statistics, and the old ones stay.
inline std::tuple<ramet::Tensor, ramet::Tensor, ramet::Tensor, ramet::Tensor, ramet::Tensor>
functional_norm_of_batch(const ramet::Tensor& x, const std::optional<ramet::Tensor>& weight,
                         const std::optional<ramet::Tensor>& bias, const ramet::Tensor& old_mean,
                         const ramet::Tensor& old_variance, bool training, double momentum,
                         double eps) {
  ramet::Tensor mean, variance;
  {
    const ramet::NoGradGuard no_grad;
    mean = old_mean.detach().clone();
    variance = old_variance.detach().clone();
  }
  const auto [y, batch_mean, rstd] =
      python::norm_of_batch(x, weight, bias, mean, variance, training, momentum, eps);
  return {y, batch_mean, rstd, mean, variance};
}
)"},
      {"pack",
       R"(/// A packed sequence: its rows in the order of time, and how many sequences each time has.
inline std::tuple<ramet::Tensor, ramet::Tensor> pack(const ramet::Tensor& input,
                                                     const ramet::Tensor& all_lengths,
                                                     bool batch_first) {
  const ramet::TensorOptions numbers =
      ramet::TensorOptions(ramet::kLong).device(ramet::Device(ramet::kCPU, 0));
  const ramet::Tensor padded = batch_first ? input.transpose(0, 1) : input;
  const ramet::Tensor lengths = all_lengths.to(numbers).contiguous();
  if (padded.dim() < 2 || lengths.dim() != 1 || lengths.numel() != padded.size(1) ||
      lengths.numel() == 0)
    throw ramet::Error("[_pack_padded_sequence] expected a length for each of the sequences");
  const int64_t* const length = lengths.data_ptr<int64_t>();
  const int64_t batch = lengths.numel();
  for (int64_t i = 0; i < batch; ++i)
    if (length[i] <= 0 || length[i] > padded.size(0) || (i > 0 && length[i] > length[i - 1]))
      throw ramet::Error("[_pack_padded_sequence] lengths: expected from 1 on, longest first");
  std::vector<ramet::Tensor> parts;
  ramet::Tensor sizes = ramet::empty({length[0]}, numbers);
  int64_t rows = batch, from = 0;
  for (int64_t time = 0; time < length[0]; ++time) {
    while (length[rows - 1] <= time) --rows;
    sizes.data_ptr<int64_t>()[time] = rows;
    // Times with as many sequences are one part.
    if (time + 1 < length[0] && length[rows - 1] > time + 1) continue;
    const ramet::Tensor part = padded.narrow(0, from, time + 1 - from).narrow(1, 0, rows);
    parts.push_back(part.flatten(0, 1));
    from = time + 1;
  }
  return {ramet::cat(parts), sizes};
}
)"},
      {"unpack", R"(/// The padded sequences of a packed one, and their lengths.
inline std::tuple<ramet::Tensor, ramet::Tensor> unpack(const ramet::Tensor& data,
                                                       const ramet::Tensor& batch_sizes,
                                                       bool batch_first,
                                                       const ramet::Scalar& padding,
                                                       int64_t total) {
  const ramet::TensorOptions numbers =
      ramet::TensorOptions(ramet::kLong).device(ramet::Device(ramet::kCPU, 0));
  const ramet::Tensor sizes = batch_sizes.to(numbers).contiguous();
  if (data.dim() < 1 || sizes.dim() != 1 || sizes.numel() == 0)
    throw ramet::Error("[_pad_packed_sequence] expected rows and a list of sizes");
  const int64_t* const count = sizes.data_ptr<int64_t>();
  const int64_t times = sizes.numel(), batch = count[0];
  std::vector<int64_t> starts{0};
  for (int64_t t = 0; t < times; ++t) {
    if (count[t] <= 0 || (t > 0 && count[t] > count[t - 1]))
      throw ramet::Error("[_pad_packed_sequence] batch sizes: expected ones that never grow");
    starts.push_back(starts.back() + count[t]);
  }
  const int64_t rows = starts.back();
  if (rows != data.size(0) || (total > 0 && total < times))
    throw ramet::Error("[_pad_packed_sequence] expected a row for each element, and a total "
                       "length from the longest sequence on");
  const int64_t longest = std::max(total, times);
  ramet::Tensor lengths = ramet::empty({batch}, numbers);
  const ramet::Tensor index = ramet::full({longest, batch}, rows, numbers);
  auto* const places = index.data_ptr<int64_t>();
  for (int64_t i = 0; i < batch; ++i) {
    int64_t t = 0;
    for (; t < times && count[t] > i; ++t)
      places[t * batch + i] = starts[static_cast<size_t>(t)] + i;
    lengths.data_ptr<int64_t>()[i] = t;
  }
  std::vector<int64_t> row(data.sizes().begin(), data.sizes().end());
  row[0] = 1;
  ramet::Tensor padded = ramet::cat({data, ramet::full(row, padding, data.options())})
                             .index_select(0, index.view({longest * batch}).to(data.device()));
  row.erase(row.begin());
  row.insert(row.begin(), {longest, batch});
  padded = padded.view(row);
  return {batch_first ? padded.transpose(0, 1) : padded, lengths};
}
)"},
      {"attend", R"(/// aten::_native_multi_head_attention
inline std::tuple<ramet::Tensor, ramet::Tensor> attend(
    const ramet::Tensor& query, const ramet::Tensor& key, const ramet::Tensor& value,
    int64_t width, int64_t heads, const ramet::Tensor& qkv_weight, const ramet::Tensor& qkv_bias,
    const ramet::Tensor& weight, const ramet::Tensor& bias,
    const std::optional<ramet::Tensor>& given, bool need_weights, bool average,
    std::optional<int64_t> kind) {
  std::optional<ramet::Tensor> mask;  // what is hidden: [batch, heads, queries, keys]
  if (given) {
    mask = given->scalar_type() == ramet::kBool ? *given : ramet::ne(*given, 0);
    if (kind.value_or(given->dim() == 4 ? 2 : 0) == 1) mask = mask->unsqueeze(1).unsqueeze(1);
  }
  const auto split = [&](const ramet::Tensor& x) {
    return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
  };
  const std::vector<ramet::Tensor> weights = qkv_weight.chunk(3), biases = qkv_bias.chunk(3);
  const ramet::Tensor q = split(ramet::linear(query, weights.at(0), biases.at(0)));
  const ramet::Tensor k = split(ramet::linear(key, weights.at(1), biases.at(1)));
  const ramet::Tensor v = split(ramet::linear(value, weights.at(2), biases.at(2)));
  ramet::Tensor mixed, shares;
  if (need_weights) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(width / heads));
    ramet::Tensor scores = ramet::matmul(ramet::mul(q, scale), k.transpose(-2, -1));
    if (mask)
      scores = ramet::masked_fill(scores, *mask, -std::numeric_limits<double>::infinity());
    shares = ramet::softmax(scores, -1);
    mixed = ramet::matmul(shares, v);
  } else {
    mixed = ramet::scaled_dot_product_attention(
        q, k, v, mask ? std::optional<ramet::Tensor>(ramet::logical_not(*mask)) : std::nullopt);
  }
  mixed = mixed.transpose(1, 2).reshape({query.size(0), query.size(1), width});
  return {ramet::linear(mixed, weight, bias),
          need_weights && average ? ramet::mean(shares, 1) : shares};
}
)"},
      {"encoder_layer", R"(/// aten::_transformer_encoder_layer_fwd
inline ramet::Tensor encoder_layer(
    const ramet::Tensor& source, int64_t width, int64_t heads, const ramet::Tensor& qkv_weight,
    const ramet::Tensor& qkv_bias, const ramet::Tensor& out_weight, const ramet::Tensor& out_bias,
    bool use_gelu, bool norm_first, double eps, const ramet::Tensor& weight1,
    const ramet::Tensor& bias1, const ramet::Tensor& weight2, const ramet::Tensor& bias2,
    const ramet::Tensor& inner_weight, const ramet::Tensor& inner_bias,
    const ramet::Tensor& outer_weight, const ramet::Tensor& outer_bias,
    const std::optional<ramet::Tensor>& mask, std::optional<int64_t> kind) {
  const auto norm1 = [&](const ramet::Tensor& x) {
    return ramet::layer_norm(x, width, weight1, bias1, eps);
  };
  const auto norm2 = [&](const ramet::Tensor& x) {
    return ramet::layer_norm(x, width, weight2, bias2, eps);
  };
  const ramet::Tensor first = norm_first ? norm1(source) : source;
  ramet::Tensor x = ramet::add(
      source, std::get<0>(python::attend(first, first, first, width, heads, qkv_weight, qkv_bias,
                                         out_weight, out_bias, mask, false, false, kind)));
  if (!norm_first) x = norm1(x);
  const ramet::Tensor inner = ramet::linear(norm_first ? norm2(x) : x, inner_weight, inner_bias);
  const ramet::Tensor active = use_gelu ? ramet::gelu(inner) : ramet::relu(inner);
  x = ramet::add(x, ramet::linear(active, outer_weight, outer_bias));
  return norm_first ? x : norm2(x);
}
)"},
      {"refuse", R"(/// What has no meaning here.
template <class T> [[noreturn]] T refuse(const char* op, const char* what) {
  throw ramet::NotImplementedError(std::string("[") + op + "] got a call, expected none: there are no " + what + " here");
}
)"},
      {"impossible", R"(/// In a branch that never runs.
template <class T> [[noreturn]] T impossible(const char* what) { throw ramet::Error(what); }
)"},
      {"check_metadata", R"(/// aten::_assert_tensor_metadata
inline void check_metadata(const ramet::Tensor& t, ramet::OptionalIntArrayRef sizes,
                           ramet::OptionalIntArrayRef strides,
                           std::optional<ramet::ScalarType> dtype,
                           std::optional<ramet::Device> device) {
  if ((sizes && t.sizes() != *sizes) || (strides && t.strides() != *strides) ||
      (dtype && t.scalar_type() != *dtype) || (device && t.device().type() != device->type()))
    throw ramet::Error("[_assert_tensor_metadata] got a tensor of another size, stride, dtype or "
                       "device, expected those of the export");
}
)"},
      {"tensor", R"(/// The sizes that nested lists have, and their numbers.
template <class T, class Out>
void take_numbers(const T& x, std::vector<int64_t>&, size_t, bool, std::vector<Out>& numbers) {
  if constexpr (std::is_same_v<T, ramet::Tensor>) numbers.push_back(x.item().template to<Out>());
  else numbers.push_back(static_cast<Out>(x));
}
template <class T, class Out>
void take_numbers(const std::vector<T>& x, std::vector<int64_t>& sizes, size_t depth, bool first,
                  std::vector<Out>& numbers);
template <class T, class Out>
void take_numbers(const ramet::List<T>& x, std::vector<int64_t>& sizes, size_t depth, bool first,
                  std::vector<Out>& numbers);
template <class List, class Out>
void take_items(const List& list, std::vector<int64_t>& sizes, size_t depth, bool first,
                std::vector<Out>& numbers) {
  if (first) sizes.push_back(static_cast<int64_t>(list.size()));
  if (sizes.at(depth) != static_cast<int64_t>(list.size()))
    throw ramet::Error("[tensor] got lists of several sizes, expected one size at each depth");
  for (size_t i = 0; i < list.size(); ++i)
    take_numbers(static_cast<const typename List::value_type&>(list[i]), sizes, depth + 1,
                 first && i == 0, numbers);
}
template <class T, class Out>
void take_numbers(const std::vector<T>& x, std::vector<int64_t>& sizes, size_t depth, bool first,
                  std::vector<Out>& numbers) {
  take_items(x, sizes, depth, first, numbers);
}
template <class T, class Out>
void take_numbers(const ramet::List<T>& x, std::vector<int64_t>& sizes, size_t depth, bool first,
                  std::vector<Out>& numbers) {
  take_items(x, sizes, depth, first, numbers);
}
template <class T> struct ItemOf { using type = T; };
template <class T> struct ItemOf<std::vector<T>> : ItemOf<T> {};
template <class T> struct ItemOf<ramet::List<T>> : ItemOf<T> {};
/// Python's torch.tensor(data) of numbers and of lists of them.
template <class T>
ramet::Tensor tensor(const T& data, std::optional<ramet::ScalarType> dtype,
                     std::optional<ramet::Device> device, bool requires_grad) {
  using Item = typename ItemOf<T>::type;
  static_assert(std::is_arithmetic_v<Item>, "lists of numbers");
  constexpr bool kReal = std::is_floating_point_v<Item>;
  using Number = std::conditional_t<kReal, double, int64_t>;
  std::vector<int64_t> sizes;
  std::vector<Number> numbers;
  take_numbers(data, sizes, 0, true, numbers);
  ramet::Tensor made =
      ramet::empty(sizes, ramet::TensorOptions(kReal ? ramet::kDouble : ramet::kLong)
                              .device(ramet::Device(ramet::kCPU, 0)));
  for (size_t i = 0; i < numbers.size(); ++i) made.data_ptr<Number>()[i] = numbers[i];
  made = made.to(kReal                          ? ramet::get_default_dtype_as_scalartype()
                 : std::is_same_v<Item, bool> ? ramet::kBool
                                                : ramet::kLong);
  made = made.to(ramet::TensorOptions().dtype(dtype).device(device));
  return requires_grad ? made.requires_grad_() : made;
}
inline ramet::Tensor tensor(const ramet::Tensor& data, std::optional<ramet::ScalarType> dtype,
                            std::optional<ramet::Device> device, bool requires_grad) {
  const ramet::Tensor made =
      data.detach().clone().to(ramet::TensorOptions().dtype(dtype).device(device));
  return requires_grad ? made.requires_grad_() : made;
}
)"},
      {"as_tensor", R"(/// Python's torch.as_tensor(data).
inline ramet::Tensor as_tensor(const ramet::Tensor& data, std::optional<ramet::ScalarType> dtype,
                               std::optional<ramet::Device> device) {
  return data.to(ramet::TensorOptions().dtype(dtype).device(device));
}
inline ramet::Tensor as_tensor(const ramet::IValue& data, std::optional<ramet::ScalarType> dtype,
                               std::optional<ramet::Device> device) {
  if (data.isTensor()) return as_tensor(data.toTensor(), dtype, device);
  if (data.isIntList()) return python::tensor(data.toIntVector(), dtype, device, false);
  if (data.isDoubleList()) return python::tensor(data.toDoubleVector(), dtype, device, false);
  throw ramet::Error("[as_tensor] expected a tensor or a list of numbers, got " + data.tagKind());
}
)"},
  };
}

}  // namespace ramet::script
