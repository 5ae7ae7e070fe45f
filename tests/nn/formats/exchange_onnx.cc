// ONNX files: one program with exchange_test.cc.
#include <iostream>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/onnx.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/sequence/embedding_bag.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/module/sequential.h"
#include "nn/serialize/safetensors.h"
#include "nn/utils/lora.h"
#include "tests/error_text.h"
#include "tests/modules.h"
#include "tests/nn/formats/exchange_support.h"
#include "tests/nn/formats/onnx_models.h"
#include "tests/nn/formats/onnx_text.h"
#include "tests/nn/formats/proto_reader.h"

namespace ramet {
namespace {

using namespace testing;  // ramet::testing

void write_model(const fs::path& path, const std::string& bytes, const Tensors& inputs,
                 const Tensors& outputs) {
  std::ofstream(path.string() + ".onnx", std::ios::binary) << bytes;
  serialize::Safetensors numbers;
  for (size_t i = 0; i < inputs.size(); ++i)
    numbers.tensors.emplace_back("in_" + std::to_string(i), inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    numbers.tensors.emplace_back("out_" + std::to_string(i), outputs[i].detach());
  save_safetensors(path.string() + ".safetensors", numbers);
}
// Where Python has ONNX Runtime, every model of the folder is run and gives its numbers.
void run_models(const fs::path& folder) {
  if (!python("check_onnx.py " + folder.string()))
    std::cout << "(python3 has no onnx or no onnxruntime: the models were not run)\n";
  fs::remove_all(folder);
}
// RAMET_WRITE_GOLDENS=1 writes the text: after ONNX Runtime has run the models.
void compare_with(const fs::path& golden, const std::string& text) {
  if (std::getenv("RAMET_WRITE_GOLDENS")) std::ofstream(golden) << text;
  const std::string wanted = read(golden);
  std::istringstream a(text), b(wanted);
  std::string x, y, model;
  for (int line = 1; std::getline(b, y); ++line) {
    if (y[0] != ' ') model = y;
    ASSERT_TRUE(std::getline(a, x)) << "ends at line " << line;
    ASSERT_EQ(x, y) << golden << ':' << line << ", in " << model;
  }
  EXPECT_EQ(text, wanted);
}

TEST(Onnx, EveryLayerBecomesItsOperators) {
  const fs::path out = folder("onnx");
  std::string text;
  for (const OnnxModel& m : onnx_models()) {
    text += m.name + "\n" + onnx_text(m.bytes);
    EXPECT_EQ(integer_of(m.bytes, 1), 8) << "IR version";
    EXPECT_EQ(integer_of(text_of(m.bytes, 8), 2), 17) << "operator set";
    write_model(out / m.name, m.bytes, m.inputs, m.outputs);
  }
  compare_with("tests/nn/formats/goldens/onnx.txt", text);
  run_models(out);
}

// Every module of the library is exported, and then ONNX Runtime computes its results, or is
// refused by name. The module's row says which.
TEST(Onnx, EveryModuleIsExportedOrRefused) {
  const fs::path out = folder("modules");
  int number = 0;
  for (const ModuleRow& row : all_modules()) {
    const char* const reason = row.why_not(Check::kOnnx);
    std::string refusal;
    Held module = held(row, kFloat);
    Tensors inputs = row.draw(3, kFloat);
    const auto forward = [&](const Tensors& in) { return Tensors{row.call(module->held(), in)}; };
    try {
      const std::string bytes = formats::onnx_bytes(module->held(), inputs, {}, forward);
      module->eval();
      write_model(out / (std::to_string(number++) + "_" + row.name), bytes, inputs,
                  forward(inputs));
    } catch (const Error& e) { refusal = e.what(); }
    EXPECT_EQ(refusal, reason ? shown("[export_onnx] the root module: ", reason) : "") << row.name;
  }
  run_models(out);
}

TEST(Onnx, ParametersKeepNamesAndBytes) {
  nn::Sequential net(nn::Linear(3, 4), nn::Sequential(nn::ReLU(), nn::Linear(4, 2)));
  const fs::path path = folder("onnx_file") / "net.onnx";
  net->train();
  net[1]->eval();
  const auto hooks = net->forward_hooks();
  export_onnx(net, zeros({1, 3}), path.string());
  EXPECT_TRUE(net->is_training() && !net[1]->is_training());  // as it was
  EXPECT_EQ(net->forward_hooks(), hooks);
  const std::string file = read(path);
  const std::string_view graph = text_of(file, 7);
  std::map<std::string, std::string> tensors;
  for (const ProtoField& t : fields_of(graph, 5))
    tensors[std::string(text_of(t.text, 8))] = std::string(t.text);
  EXPECT_EQ(tensors.size(), 4u);
  for (const auto& item : net->named_parameters()) {
    const std::string& t = tensors[item.key()];
    const Tensor& p = item.value();
    EXPECT_EQ(text_of(t, 9), std::string(static_cast<const char*>(p.data_ptr()), p.nbytes()));
    EXPECT_EQ(integer_of(t, 2), 1);  // float
    for (size_t d = 0; d < p.sizes().size(); ++d)
      EXPECT_EQ(static_cast<int64_t>(fields_of(t, 1).at(d).integer), p.sizes()[d]);
  }
  struct Plain : nn::Module {  // by value, as LibTorch's examples have theirs
    Tensor forward(Tensor x) { return fc(x).relu(); }
    nn::Linear fc{register_module("fc", nn::Linear(3, 2))};
  } plain;
  export_onnx(plain, zeros({1, 3}), path.string(), OnnxOptions().batch_dim(0));
  expect_part(onnx_text(read(path)), "input input type 1 [batch 3]");
  // Tied weights are one tensor.
  nn::Linear tied(3, 3);
  const auto once =
      formats::onnx_bytes(*nn::Sequential(tied, nn::Tanh(), tied), {ones({2, 3})}, {},
                          [&](const std::vector<Tensor>& x) {
                            return std::vector<Tensor>{nn::call(*tied, nn::call(*tied, x[0]))};
                          });
  EXPECT_EQ(fields_of(text_of(once, 7), 5).size(), 2u);
}

// A convolution's result lies in an order of its own, in which its sums are added.
// A branch is folded into the weight, as merge_lora does.
TEST(Onnx, LoRABranchesAreMerged) {
  const fs::path path = folder("onnx_lora") / "net.onnx";
  const auto same = [&](auto& module, const Tensors& inputs) {
    nn::apply_lora(module, 2, 3);
    const NoGradGuard off;
    for (const Tensor& p : nn::lora_parameters(module)) p.fill_(0.5);
    const auto written = [&] {
      export_onnx(module, inputs, path.string());
      return read(path);
    };
    const std::string branches = written();
    nn::merge_lora(module);
    EXPECT_EQ(written(), branches);
    for (const Tensor& p : module->parameters()) p.fill_(0.25);
    EXPECT_NE(written(), branches);
  };
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  same(net, {ones({2, 3})});
  nn::MultiheadAttention attention(4, 2);
  same(attention, {ones({3, 2, 4}), ones({3, 2, 4}), ones({3, 2, 4})});
}

TEST(Onnx, ReducesWhatAConvolutionMade) {
  nn::Conv2d conv(3, 4, 3);
  for (const int64_t images : {1, 2}) {
    OnnxOptions options;
    const auto reduces = [&](const std::string& node, const std::function<Tensor(Tensor)>& f) {
      const auto forward = [&](const Tensors& in) { return Tensors{f(nn::call(*conv, in[0]))}; };
      const std::string text =
          onnx_text(formats::onnx_bytes(*conv, {randn({images, 3, 8, 8})}, options, forward));
      expect_part(text, node + "\n");
    };
    reduces("ReduceMean(Conv) keepdims=0 axes=2,3", [](Tensor x) { return x.mean({2, 3}); });
    reduces("ReduceMean(Conv) keepdims=1 axes=2,3", [](Tensor x) {
      return x.mean({-2, -1}, true);
    });
    reduces("ReduceMean(Conv) keepdims=0 axes=2", [](Tensor x) { return x.mean(2); });
    reduces("ReduceMean(Conv) keepdims=0 axes=3", [](Tensor x) { return x.mean(3); });
    reduces("ReduceMean(Conv) keepdims=0 axes=1", [](Tensor x) { return x.mean(1); });
    reduces("ReduceMean(Conv) keepdims=0", [](Tensor x) { return x.mean(); });
    reduces("ReduceSum(Conv, [2 3]) keepdims=0", [](Tensor x) { return x.sum({2, 3}); });
    reduces("ReduceSum(Conv, [1 2 3]) keepdims=0", [](Tensor x) { return x.sum({1, 2, 3}); });
    reduces("ReduceL2(Conv) keepdims=0 axes=2,3", [](Tensor x) { return x.norm(2, {2, 3}); });
    reduces("ReduceMax(Conv) keepdims=0 axes=2,3", [](Tensor x) { return amax(x, {2, 3}); });
    reduces("ReduceMean(Relu) keepdims=0 axes=2,3", [](Tensor x) { return x.relu().mean({2, 3}); });
    reduces("ReduceMean(ReduceMean) keepdims=0 axes=2", [](Tensor x) { return x.mean(3).mean(2); });
    // Output's extents that divide the image's.
    const auto pooled = [](int64_t height, int64_t width) {
      return [=](Tensor x) { return adaptive_avg_pool2d(x, {height, width}).flatten(1); };
    };
    reduces("GlobalAveragePool(Conv)", pooled(1, 1));
    reduces("AveragePool(Conv) kernel_shape=2,3 strides=2,3", pooled(3, 2));
    options.batch_dim(0);
    reduces("ReduceMean(Conv) keepdims=0 axes=2,3", [](Tensor x) { return x.mean({2, 3}); });
    reduces("ReduceMean(Conv) keepdims=1 axes=2,3", [](Tensor x) { return x.mean({2, 3}, true); });
  }
}

// As residual networks are written: what a layer gave is added to.
TEST(Onnx, FollowsWhatIsWrittenInPlace) {
  nn::Linear fc(3, 3);
  const auto forward = [&](const Tensors& in) {
    Tensor y = nn::call(*fc, in[0]);
    const Tensor before = y * 2;
    y += in[0];
    y.relu_();
    return Tensors{nn::call(*fc, y).mul_(3) + before};
  };
  const std::string text =
      onnx_text(formats::onnx_bytes(*fc, {randn({2, 3})}, OnnxOptions().batch_dim(0), forward));
  EXPECT_EQ(text,
            "  input input type 1 [batch 3]\n"
            "  Gemm = Gemm(input, weight, bias) transB=1\n"
            "  Add = Add(Gemm, input)\n"
            "  Relu = Relu(Add)\n"
            "  Gemm_1 = Gemm(Relu, weight, bias) transB=1\n"
            "  Mul = Mul(Gemm_1, 3)\n"
            "  Mul_1 = Mul(Gemm, 2)\n"
            "  Add_1 = Add(Mul, Mul_1)\n"
            "  output = Identity(Add_1)\n"
            "  output output type 1 [batch 3]\n");
}

template <class F> struct FunctionalImpl : nn::Module {
  explicit FunctionalImpl(F f) : f_(f) {
    fc = register_module("fc", nn::Linear(3, 3));
    lstm = register_module("lstm", nn::LSTM(3, 3));
  }
  Tensor forward(const Tensor& x) { return f_(*this, x); }
  F f_;
  nn::Linear fc{nullptr};
  nn::LSTM lstm{nullptr};
};
// An output for each row.
struct RowsImpl : nn::Module {
  std::vector<Tensor> forward(const Tensor& x) { return (x * 2).unbind(0); }
};
template <class F> std::string refusal(F f, const OnnxOptions& options = {}) {
  const auto m = std::make_shared<FunctionalImpl<F>>(f);
  const fs::path path = folder("onnx_refused") / "net.onnx";
  std::string text = error_of([&] { export_onnx(m, randn({2, 3}), path.string(), options); });
  EXPECT_FALSE(fs::exists(path)) << text;
  EXPECT_TRUE(m->is_training() && !m->forward_hooks()) << text;
  return text;
}

// The error of an export that should succeed.
template <class F> std::string accepted(F f, const OnnxOptions& options = {}) {
  const auto m = std::make_shared<FunctionalImpl<F>>(f);
  const fs::path path = folder("onnx_accepted") / "net.onnx";
  std::string text = error_of([&] { export_onnx(m, randn({2, 3}), path.string(), options); });
  EXPECT_TRUE(fs::exists(path)) << text;
  return text;
}

// Rows of packed sequences are no sequence of the operator.
struct PackedNetImpl : nn::Cloneable<PackedNetImpl> {
  PackedNetImpl() { PackedNetImpl::reset(); }
  void reset() override { lstm = register_module("lstm", nn::LSTM(3, 4)); }
  Tensor forward(const Tensor& x) {
    const auto rows = nn::utils::rnn::pack_padded_sequence(x, tensor({2, 2}));
    return std::get<0>(lstm->forward_with_packed_input(rows)).data();
  }
  nn::LSTM lstm{nullptr};
};
RAMET_MODULE_IMPL(PackedNet, PackedNetImpl);

TEST(Onnx, RefusesByTheModulesPath) {
  const auto refused = [](const auto& module, IntArrayRef sizes, const std::string& part) {
    const nn::Sequential net(nn::Identity(), nn::Sequential(nn::Identity(), module));
    EXPECT_ERROR_TEXT(export_onnx(net, zeros(sizes), "/nowhere/net.onnx"), "'1.1': " + part);
  };
  refused(nn::AvgPool1d(nn::AvgPool1dOptions(2).ceil_mode(true)), {1, 2, 5}, "ceil_mode");
  refused(nn::AvgPool2d(nn::AvgPool2dOptions(2).divisor_override(3)), {1, 2, 4, 4}, "divisor");
  refused(nn::BatchNorm1d(nn::BatchNorm1dOptions(2).track_running_stats(false)), {3, 2},
          "a batch norm without running statistics");
  refused(nn::PixelShuffle(2), {4, 3, 3}, "PixelShuffle");
  using Factors = std::vector<double>;
  const auto cubic = nn::UpsampleOptions().mode(kBicubic);
  refused(nn::Upsample(nn::UpsampleOptions(cubic).scale_factor(Factors{1.1, 1.2})), {1, 2, 3, 4},
          "a scale_factor that leaves the extents as they are");
  refused(nn::Upsample(nn::UpsampleOptions(cubic).scale_factor(Factors{1, 0.29})), {1, 1, 2, 100},
          "a scale_factor that makes another extent of 100 in float32");
  refused(nn::ConvTranspose1d(nn::ConvTranspose1dOptions(1, 1, 2).dilation(2).output_padding(1)),
          {1, 1, 3}, "output_padding that is a stride or more");
  EXPECT_ERROR_TEXT(export_onnx(nn::LSTM(nn::LSTMOptions(3, 4).proj_size(2)), ones({2, 1, 3}), "x"),
                    "[export_onnx] the root module: proj_size has no operator");
  EXPECT_ERROR_TEXT(export_onnx(PackedNet(), ones({2, 2, 3}), "x"), "'lstm'");
  EXPECT_ERROR_TEXT(
      export_onnx(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().label_smoothing(0.1)),
                  {ones({2, 3}), ones({2}).to(kLong)}, "x"),
      "label_smoothing");
  EXPECT_ERROR_TEXT(export_onnx(nn::CrossEntropyLoss(), {ones({2, 3}), ones({2, 3})}, "x"),
                    "targets that are probabilities");
  EXPECT_ERROR_TEXT(export_onnx(nn::EmbeddingBag(nn::EmbeddingBagOptions(3, 2).padding_idx(0)),
                                ones({2, 2}).to(kLong), "x"),
                    "padding_idx");
  EXPECT_ERROR_TEXT(export_onnx(nn::GRUCell(3, 4), ones({3}), "x"), "expected 2 dimensions");
  EXPECT_ERROR_TEXT(export_onnx(nn::Conv2d(1, 1, 1), zeros({1, 1, 2, 2}), "/nowhere/net.onnx"),
                    "/nowhere");
  EXPECT_ERROR_TEXT(export_onnx(nn::Linear(2, 2), zeros({0, 2}), "x"), "expected an example");
  EXPECT_ERROR_TEXT(export_onnx(nn::Linear(2, 2), std::vector<Tensor>(2, ones({1, 2})), "x"),
                    "does not take 2 tensors");
  for (const OnnxOptions& options : {OnnxOptions(), OnnxOptions().batch_dim(0)})
    EXPECT_ERROR_TEXT(export_onnx(nn::Linear(2, 2), std::vector<Tensor>(), "x", options),
                      "got 0 inputs, expected 1 to 4");
  EXPECT_ERROR_TEXT(export_onnx(nn::Linear(nullptr), ones({1, 2}), "x"), "empty ModuleHolder");
  nn::Linear hooked(2, 2);
  hooked->register_forward_hook(
      [](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>&) {});
  EXPECT_ERROR_TEXT(export_onnx(nn::Sequential(hooked), ones({1, 2}), "x"),
                    "'0' has forward hooks");
  EXPECT_ERROR_TEXT(
      export_onnx(nn::Linear(2, 2), ones({1, 2}), "x", OnnxOptions().input_names({"a", "b"})),
      "2 names of inputs");
  EXPECT_ERROR_TEXT(
      export_onnx(nn::Linear(2, 2), ones({1, 2}), "x", OnnxOptions().output_names({"weight"})),
      "something else");
}

TEST(Onnx, RefusesWhatItCannotTell) {
  expect_part(
      refusal([](auto& m, const Tensor& x) { return m.fc(x.cumsum(1)); }),
      "in the forward of the root module: what 'fc' is given, float32[2, 3] on cpu, comes by an "
      "operation that cannot be exported: got CumsumBackward0");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x).cumsum(0); }), "an output");
  // A forward that catches does not hide it; nor that it went another way.
  const auto caught = [](auto& m, const Tensor& x, const Tensor& first) {
    try {
      return m.fc(first);
    } catch (const Error&) { return m.fc(x); }
  };
  expect_part(refusal([&](auto& m, const Tensor& x) { return caught(m, x, x.cumsum(1)); }),
              "got CumsumBackward0");
  expect_part(refusal([&](auto& m, const Tensor& x) { return caught(m, x, x.t()); }),
              "a forward caught what 'fc' threw");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x).diagonal() + 1; }),
              "got DiagonalBackward0");
  // What the forward makes may come of the input, whatever it is. The caller may say that it does
  // not; what some other input changes is refused all the same.
  const auto with_ones = [](auto& m, const Tensor& x) { return m.fc(x) + ones({3}); };
  const OnnxOptions made = OnnxOptions().made_constants(true);
  expect_part(refusal(with_ones), "an output, float32[3] on cpu, is made there");
  EXPECT_EQ(accepted(with_ones, made), "no error");
  for (const double bound : {-9., 9.})
    expect_part(
        refusal([bound](auto& m, const Tensor& x) { return m.fc(x) * (x > bound).to(kFloat); },
                made),
        "changes with the inputs' values");
  expect_part(refusal([](auto& m, const Tensor& x) {
                const Tensor y = m.fc(x);
                const NoGradGuard off;
                y.mul_(2);
                return y;
              }),
              "written where nothing is recorded");
  EXPECT_EQ(accepted([](auto& m, const Tensor& x) {
              const Tensor y = m.fc(x), z = y * 3;
              const NoGradGuard off;
              y.select(1, 0).fill_(7);
              return z;
            }),
            "no error")
      << "written after it was read";
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x) * (x > -9).to(kFloat); }),
              "is made there");
  // A number that depends on the input.
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x) * x.sum().item(); }),
              "does other things for other numbers");
  // No history, and no constant either: the same in both runs, but by chance.
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x.gt(-9).to(kFloat)); }),
              "what 'fc' is given, float32[2, 3] on cpu, is made there");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x) + (x < -9).to(kFloat); }),
              "is made there");
  int calls = 0;
  expect_part(refusal([&calls](auto& m, const Tensor& x) {
                return ++calls % 2 ? m.fc(x) : m.fc(x).tanh();
              }),
              "does other things for other numbers");
  expect_part(refusal(
                  [](auto& m, const Tensor& x) {
                    Tensor y = m.fc(x);
                    return x.size(0) > 2 ? y.tanh() : y;
                  },
                  OnnxOptions().batch_dim(0)),
              "for another extent of batch_dim");
  const auto rows = std::make_shared<RowsImpl>();
  for (const int64_t batch : {2, 9})  // fewer outputs than for the other extent, and more
    EXPECT_ERROR_TEXT(export_onnx(rows, ones({batch, 3}), "x", OnnxOptions().batch_dim(0)),
                      "for another extent of batch_dim");
  expect_part(refusal([](auto& m, const Tensor& x) {
                const Tensor made = x.gt(-9).to(kFloat).unsqueeze(0);
                return std::get<0>(m.lstm(x.unsqueeze(0), std::make_tuple(made, made)));
              }),
              "what 'lstm' is given, float32[1, 2, 3] on cpu, is made there");
}

}  // namespace
}  // namespace ramet
