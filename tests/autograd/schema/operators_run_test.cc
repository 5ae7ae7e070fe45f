// Every operator is called once at least: with values made for the types of its parameters, or with
// those that it needs.
#include <gtest/gtest.h>

#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "runtime/base/error.h"
#include "tests/autograd/schema/called.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

// Values for a parameter of a type, in the `attempt`-th try of all parameters.
constexpr int kAttempts = 14;
Tensor tensor_of(int attempt) {
  switch (attempt) {
    case 0: return rand({2, 2});
    case 1: return rand({2, 2, 4, 4});
    case 2: return randint(0, 2, {2, 2});
    case 3: return rand({3});
    case 4: return ones({}, TensorOptions(kLong));
    case 5: return rand({2, 2, 2});
    case 6: return rand({2, 2}) > 0.5;
    case 7: return rand({1, 2, 4, 4, 4});
    case 8: return rand({2, 2, 4});
    case 9: return ones({3}, TensorOptions(kLong));
    default: return rand({1, 1, 4, 4});
  }
}
IValue value_of(const Parameter& parameter, const TypePtr& type, int attempt) {
  const bool larger = attempt % 2 == 1;
  switch (type->kind()) {
    case Kind::kTensor: return tensor_of(attempt);
    case Kind::kInt: return parameter.name == "steps" || larger ? 1 : 0;
    case Kind::kFloat: return 0.5;
    case Kind::kBool: return larger;
    case Kind::kNumber: return attempt == 2 ? IValue(1) : IValue(0.5);
    case Kind::kString: return "ab";
    case Kind::kDevice: return Device(kCPU, 0);
    case Kind::kOptional: return {};
    case Kind::kVariable: return 1;
    case Kind::kFuture:
      return IValue(IValue::FuturePtr(std::make_shared<IValue::Future>(IValue(3))));
    case Kind::kList: {
      std::vector<IValue> items;
      const bool pairs = type->element()->kind() == Kind::kTuple;
      // As long as a tensor has dimensions, or as the parameter says.
      const int count = parameter.repeat > 0 ? static_cast<int>(parameter.repeat) : 2;
      for (int i = 0; i < count; ++i) {
        const TypePtr& element = type->element();
        if (element->kind() == Kind::kInt) items.push_back(attempt < 12 ? i % 2 : 2);
        else if (pairs)
          items.push_back(
              std::make_tuple(value_of(parameter, element->element(0), attempt), IValue(1)));
        else items.push_back(value_of(parameter, element, attempt));
      }
      if (parameter.name == "kernel_size" || parameter.name == "output_size")
        for (IValue& item : items) item = 2;
      return make_list(
          type->element()->kind() == Kind::kVariable ? Type::of(Kind::kInt) : type->element(),
          std::move(items));
    }
    case Kind::kDict:
      return IValue::GenericDict{{value_of(parameter, type->element(0), attempt), IValue(1)}};
    default: return 1;
  }
}

// What needs values of its own: lists of them, for the overloads with as many parameters. Further
// parameters have their defaults.
using Sets = std::multimap<std::string, std::vector<IValue>>;
Sets special() {
  const Tensor x = rand({2, 3, 4}), image = rand({1, 2, 4, 4}), square = rand({2, 2});
  const Tensor index = tensor({1, 0}), two = tensor({2, 2}), vec = rand({2}), grads = rand({2});
  const Tensor labels = randint(0, 2, {2}), wide = rand({8, 2}), mask = square > 0.5;
  const Tensor doubles = rand({2, 2}, TensorOptions(kDouble));
  const Tensor pair = rand({2, 3, 2}), bias = rand({2}), rows = rand({4, 2}),
               step = rand({1, 2, 2});
  const Tensor wanted = rand({2}).requires_grad_();
  const auto ints = [](std::vector<int64_t> list) { return IValue(std::move(list)); };
  const auto several = [](std::vector<Tensor> list) { return IValue(std::move(list)); };
  const IValue one = ints({1}), ones2 = ints({1, 1}), zeros2 = ints({0, 0}), none, no = false;
  Sets made = {
      {"Float", {"1.5"}},
      {"Int", {"15"}},
      {"ord", {"a"}},
      {"device", {"cpu"}},
      {"device", {"cpu", 0}},
      {"get_autocast_dtype", {"cpu"}},
      {"_unwrap_optional", {3}},
      {"unchecked_unwrap_optional", {3}},
      {"_convolution",
       {image, rand({3, 2, 1, 1}), none, ones2, zeros2, ones2, no, zeros2, 1, no, no, no, no}},
      {"_convolution",
       {image, rand({3, 2, 1, 1}), none, ones2, zeros2, ones2, no, zeros2, 1, no, no, no}},
      {"convolution", {image, rand({3, 2, 1, 1}), none, ones2, zeros2, ones2, no, zeros2, 1}},
      {"_convolution_mode", {image, rand({3, 2, 1, 1}), none, ones2, "same", ones2, 1}},
      {"conv_transpose3d", {rand({1, 2, 3, 3, 3}), rand({2, 1, 1, 1, 1})}},
      {"conv_tbc", {x, rand({1, 4, 2}), vec}},
      {"_native_multi_head_attention",
       {pair, pair, pair, 2, 1, rand({6, 2}), rand({6}), square, bias}},
      {"_transformer_encoder_layer_fwd",
       {pair, 2, 1, rand({6, 2}), rand({6}), square, bias, true, no, 1e-5, bias, bias, bias, bias,
        wide, rand({8}), rand({2, 8}), bias}},
      {"_pack_padded_sequence", {x, tensor({3, 1}), true}},
      {"_pad_packed_sequence", {rows, two, true, 0.0, 0}},
      {"_unsafe_view", {square, ints({4})}},
      {"view", {square, ints({4})}},
      {"reshape", {square, ints({4})}},
      {"unflatten", {square, 0, ints({1, 2})}},
      {"sum_to_size", {square, ints({1, 2})}},
      {"layer_norm", {square, ints({2})}},
      {"rms_norm", {square, ints({2})}},
      {"as_strided_scatter", {square, vec, ints({2}), one}},
      {"diagonal_scatter", {square, vec}},
      {"select_scatter", {square, vec, 0, 1}},
      {"addbmm", {square, rand({3, 2, 2}), rand({3, 2, 2})}},
      {"addbmm_", {square, rand({3, 2, 2}), rand({3, 2, 2})}},
      {"addmv", {vec, square, vec}},
      {"addmv_", {vec, square, vec}},
      {"addr_", {square, vec, vec}},
      {"mv", {square, vec}},
      {"prelu", {square, vec}},
      {"backward", {mul(wanted, 2).sum()}},
      {"retain_grad", {mul(wanted, 2)}},
      {"grad", {several({mul(wanted, 2).sum()}), several({wanted})}},
      {"col2im", {rand({1, 4, 9}), ints({4, 4}), ints({2, 2}), ones2, zeros2, ones2}},
      {"cosine_embedding_loss", {square, square, sign(vec)}},
      {"ctc_loss", {rand({3, 1, 2}), tensor({{1}}), ints({3}), one}},
      {"ctc_loss", {rand({3, 1, 2}), tensor({{1}}), tensor({3}), tensor({1})}},
      {"einsum", {"ij,jk->ik", several({square, square})}},
      {"float_power_", {doubles, 2.0}},
      {"float_power_", {doubles, doubles}},
      {"gru",
       {step, step, several({wide.narrow(0, 0, 6), wide.narrow(0, 0, 6)}), no, 1, 0.0, no, no, no}},
      {"gru",
       {rows, two, step, several({wide.narrow(0, 0, 6), wide.narrow(0, 0, 6)}), no, 1, 0.0, no,
        no}},
      {"gru_cell", {square, square, wide.narrow(0, 0, 6), wide.narrow(0, 0, 6)}},
      {"lstm", {step, several({step, step}), several({wide, wide}), no, 1, 0.0, no, no, no}},
      {"lstm",
       {rows, two, several({rand({1, 2, 2}), rand({1, 2, 2})}), several({wide, wide}), no, 1, 0.0,
        no, no}},
      {"lstm_cell", {square, several({square, square}), wide, wide}},
      {"index_copy", {square, 0, index, square}},
      {"index_copy_", {square, 0, index, square}},
      {"index_add", {square, 0, index, square}},
      {"index_add_", {square, 0, index, square}},
      {"index_fill", {square, 0, index, 1.0}},
      {"index_fill_", {square, 0, index, 1.0}},
      {"index_fill", {square, 0, index, scalar_tensor(1.0)}},
      {"index_fill_", {square, 0, index, scalar_tensor(1.0)}},
      {"index_reduce", {square, 0, index, square, "amax"}},
      {"index_reduce_", {square, 0, index, square, "amax"}},
      {"index_select", {square, 0, index}},
      {"embedding_renorm_", {square, index, 1.0, 2.0}},
      {"cholesky", {eye(2)}},
      {"linalg_cholesky", {eye(2)}},
      {"linalg_cholesky_ex", {eye(2)}},
      {"linalg_matrix_norm", {square, 1.0}},
      {"linalg_norm", {square, "fro"}},
      {"masked_fill", {square, mask, scalar_tensor(1.0)}},
      {"masked_fill_", {square, mask, scalar_tensor(1.0)}},
      {"meshgrid", {several({vec, vec}), "ij"}},
      {"multi_margin_loss", {square, labels}},
      {"multilabel_margin_loss", {square, tensor({{0, 1}, {1, -1}})}},
      {"narrow", {square, 0, tensor(1), 1}},
      {"_native_batch_norm_legit", {square, vec, vec, vec.clone(), vec.clone(), true, 0.1, 1e-5}},
      {"_native_batch_norm_legit_functional", {square, vec, vec, vec, vec, true, 0.1, 1e-5}},
      {"_native_batch_norm_legit_no_training", {square, vec, vec, vec, vec, 0.1, 1e-5}},
      {"native_layer_norm", {square, ints({2}), vec, vec, 1e-5}},
      {"nll_loss_forward", {square, labels, IValue(), 1, -100}},
      {"nll_loss2d_forward", {image, zeros({1, 4, 4}, TensorOptions(kLong)), IValue(), 1, -100}},
      {"nll_loss", {square, labels}},
      {"nll_loss_nd", {square, labels}},
      {"nll_loss2d", {image, zeros({1, 4, 4}, TensorOptions(kLong))}},
      {"norm", {square, 2.0, 6}},
      {"norm", {square, 2.0, one, no, 6}},
      {"randint", {0, 5, ints({2})}},
      {"randint", {0, 5, ints({2}), none}},
      {"randint_like", {square, 0, 5}},
      {"scatter", {square, 0, labels.unsqueeze(0), square, "add"}},
      {"scatter", {square, 0, labels.unsqueeze(0), 2.0, "multiply"}},
      {"scatter_", {square, 0, labels.unsqueeze(0), square, "add"}},
      {"scatter_", {square, 0, labels.unsqueeze(0), 2.0, "multiply"}},
      {"scatter_reduce", {square, 0, labels.unsqueeze(0), square, "amax"}},
      {"scatter_reduce_", {square, 0, labels.unsqueeze(0), square, "amax"}},
      {"segment_reduce", {vec, "sum", tensor({1, 1})}}};
  const IValue wanted3 = List<bool>({true, true, true}), flat = tensor({0, 1});
  for (const char* name : {"embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"})
    made.insert({name, {square, index, flat}});
  made.insert({"affine_grid_generator", {rand({1, 2, 3}), ints({1, 1, 2, 2}), no}});
  made.insert({"avg_pool2d_backward", {image, image, ones2, ones2, zeros2, no, no, none}});
  made.insert({"backward", {several({mul(wanted, 2).sum()})}});
  made.insert(
      {"convolution_backward",
       {image, image, rand({2, 2, 1, 1}), none, ones2, zeros2, ones2, no, zeros2, 1, wanted3}});
  made.insert({"embedding_dense_backward", {square, flat, 2, -1, no}});
  for (const char* name : {"grid_sampler", "grid_sampler_2d"})
    made.insert({name, {image, rand({1, 3, 3, 2}), 0, 0, no}});
  made.insert({"grid_sampler_3d", {rand({1, 2, 3, 3, 3}), rand({1, 2, 2, 2, 3}), 0, 0, no}});
  made.insert({"max_pool2d_with_indices_backward",
               {image, image, ones2, ones2, zeros2, ones2, no, zeros_like(image).to(kLong)}});
  made.insert({"native_group_norm_backward",
               {image, image, zeros({1, 1}), ones({1, 1}), none, 1, 2, 16, 1, wanted3}});
  made.insert({"embedding_bag", {square, index, tensor({0, 1}), no, 0, no, none, no, none}});
  for (const char* name : {"rnn_tanh", "rnn_relu"}) {
    made.insert({name, {step, step, several({square, square}), no, 1, 0.0, no, no, no}});
    made.insert({name, {rows, two, step, several({square, square}), no, 1, 0.0, no, no}});
  }
  for (const char* name : {"clamp", "clamp_", "clip", "clip_"}) {
    made.insert({name, {square, 0.5}});
    made.insert({name, {square, square}});
  }
  for (const auto& [dimensions, kinds] :
       {std::pair(1, std::vector<const char*>{"_upsample_nearest_exact1d", "upsample_nearest1d",
                                              "upsample_linear1d"}),
        {2,
         {"_upsample_nearest_exact2d", "upsample_nearest2d", "upsample_bilinear2d",
          "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"}},
        {3, {"_upsample_nearest_exact3d", "upsample_nearest3d", "upsample_trilinear3d"}}})
    for (const char* name : kinds) {
      const Tensor input = rand(std::vector<int64_t>(static_cast<size_t>(dimensions) + 2, 2));
      const IValue size = ints(std::vector<int64_t>(static_cast<size_t>(dimensions), 3));
      made.insert({name, {input, size, none}});
      made.insert({name, {input, size, no, none}});
    }
  return made;
}

// These are only there to be refused, or end the program's course; cuda() needs a GPU.
bool refused(const std::string& name) {
  return name == "aten::_nested_tensor_from_mask" || name == "aten::_upsample_lanczos2d_aa" ||
         name == "prim::RaiseException" || name == "aten::cuda";
}

bool runs(const Operator& op, const std::vector<IValue>& values, std::string& why) {
  std::vector<const IValue*> pointers;
  for (const IValue& value : values) pointers.push_back(&value);
  try {
    const AutoGradMode mode(GradMode::is_enabled());
    (void)op.function(pointers);
    return true;
  } catch (const Error& error) {
    why = error.what();
    return false;
  }
}

TEST(Operators, AllRun) {
  manual_seed(1);
  const auto own = special();
  size_t count = 0;
  for (const std::string& name : operator_names())
    for (const Operator* op : operators_named(name)) {
      std::string why, first;
      bool ran = false;
      const auto [begin, end] = own.equal_range(name.substr(name.find("::") + 2));
      for (auto set = begin; set != end && !ran; ++set) {
        std::vector<IValue> values = set->second;
        if (values.size() > op->parameters.size()) continue;
        for (size_t i = values.size(); i < op->parameters.size(); ++i)
          values.push_back(op->parameters[i].value.value_or(IValue()));
        ran = runs(*op, values, why);
      }
      for (int attempt = 0; attempt < kAttempts && !ran; ++attempt) {
        std::vector<IValue> values;
        for (const Parameter& parameter : op->parameters)
          values.push_back(parameter.value ? *parameter.value
                                           : value_of(parameter, parameter.type, attempt));
        ran = runs(*op, values, why);
        if (attempt == 0) first = why;
      }
      count += ran ? 1 : 0;
      EXPECT_EQ(ran, !refused(name)) << op->text() << "\n" << first;
    }
  EXPECT_GT(count, 1400u);
}

}  // namespace
}  // namespace ramet::script
