// Prints what is not a tensor with values or a module: scalars, dtypes, devices, layouts, options,
// sizes, optionals, vectors, an undefined tensor. Also manipulators of the stream, torch::print,
// and what errors say.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

template <typename T> void show(const char* title, const T& value) {
  std::cout << title << ": " << value << "\n";
}

void small_things() {
  std::cout << std::setprecision(2) << torch::tensor({1.0 / 3, 2.0 / 3}) << std::setprecision(6)
            << "\n";
  torch::print(torch::eye(2));
  torch::print(std::cout, torch::arange(24, torch::kFloat).view({1, 24}), /*linesize=*/40);
  show("\nnot defined", torch::Tensor());
  show("scalar", torch::Scalar(3));
  show("scalar", torch::Scalar(0.5));
  show("scalar", torch::Scalar(true));
  show("item", torch::tensor({7}).item());
  show("dtype", torch::kFloat32);
  show("dtype", torch::ones(1, torch::kHalf).scalar_type());
  show("type meta", torch::ones(1).dtype());
  show("its name", torch::ones(1, torch::kInt).dtype().name());
  show("toString", torch::toString(torch::kLong));
  show("device", torch::Device(torch::kCPU));
  show("device", torch::Device("cuda:1"));
  show("device type", torch::kCUDA);
  show("device of a tensor", torch::zeros({1}).device());
  show("str", torch::Device(torch::kCUDA, 2).str());
  show("layout", torch::ones({1}).layout());
  show("memory format", torch::MemoryFormat::ChannelsLast);
  show("options", torch::TensorOptions().dtype(torch::kDouble).requires_grad(true));
  show("options", torch::ones({1}).options());
  show("sizes", torch::zeros({2, 3}).sizes());
  show("strides", torch::zeros({2, 3}).strides());
  show("no sizes", torch::zeros({}).sizes());
  show("IntArrayRef", torch::IntArrayRef({4, 5, 6}));
  show("half", torch::Half(1.5));
  show("bfloat16", torch::BFloat16(0.25f));
  show("type", torch::ones({1}, torch::kDouble).toString());
  show("slice", torch::indexing::Slice(1, 7, 2));
  show("index", torch::indexing::TensorIndex(torch::indexing::Ellipsis));
  const std::vector<int64_t> vector{1, 2, 3};
  std::cout << "vector: " << c10::IntArrayRef(vector) << " and " << vector << "\n";
  std::cout << "tensors: " << torch::TensorList({torch::ones({1}), torch::zeros({1})}) << "\n";
  const torch::optional<int64_t> five = 5, nothing = torch::nullopt;
  std::cout << "optional: " << five.value_or(-1) << " " << nothing.value_or(-1) << " "
            << (nothing.has_value() ? "something" : "nothing") << "\n";
  std::cout << "expanding: " << torch::ExpandingArray<2>({3, 4})
            << torch::ExpandingArray<3, double>(0.5) << "\n";
  std::cout << "tuple: " << std::get<0>(torch::arange(4).view({2, 2}).max(1)) << "\n";
}

void errors() {
  try {
    TORCH_CHECK(1 + 1 == 3, "got ", 1 + 1, ", expected ", 3);
  } catch (const c10::Error& e) {
    std::cout << "c10::Error: " << e.what_without_backtrace() << "\n";
  }
  try {
    torch::ones({2, 3}).mm(torch::ones({2, 3}));
  } catch (const std::exception& e) {
    std::cout << "shapes: " << (std::string(e.what()).empty() ? "nothing said" : "an error")
              << "\n";
  }
  try {
    torch::zeros({2}).index({5});
  } catch (const c10::IndexError&) { std::cout << "IndexError\n"; } catch (const torch::Error&) {
    std::cout << "Error\n";
  }
  try {
    torch::Device device("abacus");
  } catch (const c10::Error&) { std::cout << "no such device\n"; } catch (const std::exception&) {
    std::cout << "no such device, as another error\n";
  }
}

// What a tensor that was never given a value says of itself, and which questions it refuses.
#define SAY(text, value)                                                         \
  do try {                                                                       \
      std::cout << text << ": ";                                                 \
      std::cout << (value) << "\n";                                              \
    } catch (const c10::Error&) { std::cout << "not of an undefined tensor\n"; } \
  while (false)
#define ASK(question) SAY(#question, question)
#define TRY(call) SAY(#call, ((void)(call), "done"))

void not_defined() {
  const torch::Tensor none, two = torch::ones(2);
  ASK(none.dim());
  ASK(none.numel());
  ASK(none.sizes());
  ASK(none.size(0));
  ASK(none.size(-1));
  ASK(none.size(1));
  ASK(none.scalar_type());
  ASK(none.dtype());
  ASK(none.itemsize());
  ASK(none.element_size());
  ASK(none.nbytes());
  ASK(none.device());
  ASK(none.get_device());
  ASK(none.is_cpu());
  ASK(none.is_cuda());
  ASK(none.is_floating_point());
  ASK(none.is_signed());
  ASK(none.storage_offset());
  ASK(none.strides());
  ASK(none.stride(0));
  ASK(none.is_contiguous());
  ASK(none.is_contiguous(torch::MemoryFormat::ChannelsLast));
  ASK(none.layout());
  ASK(none.type());
  ASK(none.toString());
  ASK(none.is_leaf());
  ASK(none.is_inference());
  ASK(none.is_view());
  ASK(none.is_nonzero());
  ASK(none._version());
  ASK(none.has_storage());
  ASK(none.use_count());
  ASK(none.is_alias_of(two));
  ASK(two.is_alias_of(none));
  ASK(none.is_same(torch::Tensor()));
  ASK(none.is_non_overlapping_and_dense());
  ASK(none.requires_grad());
  ASK(none.output_nr());
  ASK(none.contiguous().defined());
  TRY(none.options());
  TRY(none.data_ptr());
  TRY(none.data_ptr<float>());
  TRY(none.const_data_ptr<float>());
  TRY((none.accessor<float, 1>()));
  TRY((none.packed_accessor64<float, 1>()));
  TRY(none.item());
  TRY(none.item<float>());
  TRY(none.requires_grad_());
  TRY(none.set_requires_grad(true));
  TRY(none.grad());
  TRY(none.grad_fn());
  TRY(none.backward());
  TRY(none.retain_grad());
  TRY(none.remove_hook(0));
  TRY(none.register_hook([](const torch::Tensor&) {}));
  TRY(none.detach());
  TRY(none.detach_());
  TRY(none.data());
  TRY(none.variable_data());
  TRY(none.tensor_data());
  TRY(none.set_data(two));
  TRY(two.set_data(none));
  TRY(none._base());
  TRY(none.clone());
  TRY(none.to(torch::kDouble));
  TRY(none.to(two));
  TRY(two.to(none));
  TRY(two.type_as(none));
  TRY(two.view_as(none));
  TRY(two.reshape_as(none));
  TRY(two.expand_as(none));
  TRY(none.cpu());
  TRY(none.is_pinned());
  TRY(none.zero_());
  TRY(none.view({1}));
  TRY(none.expand({1}));
  TRY(none.t());
  TRY(two.copy_(none));
  TRY(two.equal(none));
  TRY(none + two);
  TRY(two + none);
}

int main() {
  small_things();
  errors();
  not_defined();
  std::ostringstream out;
  out << torch::ones({1, 2}) << torch::kCPU;
  std::cout << out.str().size() << " characters\n";
  std::cerr << "this goes elsewhere\n";
  return 0;
}
