// DLPack, Eigen, ONNX files and TensorBoard's event files.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "autograd/ops.h"
#include "nn/formats/dlpack.h"
#include "nn/formats/eigen.h"
#include "nn/formats/onnx.h"
#include "nn/formats/tensorboard.h"
#include "nn/layers/activation.h"
#include "nn/layers/batchnorm.h"
#include "nn/layers/conv.h"
#include "nn/layers/linear.h"
#include "nn/layers/pixel_shuffle.h"
#include "nn/layers/pooling.h"
#include "nn/layers/recurrent.h"
#include "nn/module/sequential.h"
#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"
#include "tests/nn/formats/dlpack_structs.h"
#include "tests/nn/formats/onnx_models.h"
#include "tests/nn/formats/onnx_text.h"
#include "tests/nn/formats/proto_reader.h"

namespace ramet {
namespace {

using namespace testing;  // ramet::testing
namespace fs = std::filesystem;

fs::path folder(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  const fs::path path = fs::path(base ? base : fs::temp_directory_path().string()) /
                        (name + std::to_string(::getpid()));
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}
std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Runs a script of this folder; false, with the reason printed, where Python has not what it needs.
bool python(const std::string& arguments) {
  const std::string command = "python3 tests/nn/formats/data/" + arguments;
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code != 77 && code != 127) { EXPECT_EQ(code, 0) << command; }
  return code == 0;
}

// ---- DLPack -------------------------------------------------------------------------------------

// Memory of another library, with the struct it gives away.
template <class Managed> struct Foreign {
  alignas(64) unsigned char memory[256] = {};
  int64_t sizes[3] = {2, 3, 4}, strides[3] = {12, 4, 1};
  int given_back = 0;
  Managed managed{};
  Foreign() {
    DLTensor& t = managed.dl_tensor;
    t.data = memory;
    t.device = {kDLCPU, 0};
    t.ndim = 3;
    t.dtype = {2, 32, 1};
    t.shape = sizes;
    t.strides = strides;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* m) { ++static_cast<Foreign*>(m->manager_ctx)->given_back; };
    if constexpr (std::is_same<Managed, DLManagedTensorVersioned>::value) managed.version = {1, 0};
  }
};
using Old = Foreign<DLManagedTensor>;
using New = Foreign<DLManagedTensorVersioned>;

TEST(Dlpack, ExportsEveryDtypeWithItsGeometry) {
  const uint8_t codes[] = {6, 1, 0, 0, 0, 0, 2, 4, 2, 2};
  for (int k = 0; k < kScalarTypes; ++k) {
    const auto dtype = static_cast<ScalarType>(k);
    const Tensor whole = zeros({3, 4, 5}, dtype), t = whole.transpose(0, 2).slice(1, 1, 4, 2);
    DLManagedTensor* old = to_dlpack(t);
    DLManagedTensorVersioned* versioned = to_dlpack_versioned(t);
    EXPECT_EQ(versioned->version.major, 1u);
    EXPECT_EQ(versioned->flags, 0u);
    for (const DLTensor* d : {&old->dl_tensor, &versioned->dl_tensor}) {
      EXPECT_EQ(static_cast<char*>(d->data) + d->byte_offset, static_cast<char*>(t.data_ptr()));
      EXPECT_EQ(d->device.device_type, kDLCPU);
      EXPECT_EQ(d->device.device_id, 0);
      EXPECT_EQ(d->dtype.code, codes[k]);
      EXPECT_EQ(d->dtype.bits, 8 * item_size(dtype));
      EXPECT_EQ(d->dtype.lanes, 1);
      EXPECT_EQ(IntArrayRef(d->shape, 3), (IntArrayRef{5, 2, 3}));
      EXPECT_EQ(IntArrayRef(d->strides, 3), (IntArrayRef{1, 10, 20}));
    }
    old->deleter(old);
    versioned->deleter(versioned);
  }
  DLManagedTensor* scalar = to_dlpack(tensor(3.5));
  EXPECT_EQ(scalar->dl_tensor.ndim, 0);
  EXPECT_EQ(*static_cast<float*>(scalar->dl_tensor.data), 3.5f);
  scalar->deleter(scalar);
  // Another logical CPU is the host's memory too.
  DLManagedTensor* replica = to_dlpack(ones({2}, TensorOptions().device("cpu:1")));
  EXPECT_EQ(replica->dl_tensor.device.device_id, 0);
  replica->deleter(replica);
}

TEST(Dlpack, AnExportKeepsTheMemory) {
  Tensor t =
      arange(600, TensorOptions(kFloat)).view({20, 30});  // too large to lie beside its header
  auto* const memory = t.data_ptr<float>();
  DLManagedTensor* out = to_dlpack(t);
  t.set_data(zeros({2}));
  t.reset();
  EXPECT_EQ(out->dl_tensor.data, memory);
  EXPECT_EQ(static_cast<float*>(out->dl_tensor.data)[599], 599);
  const Tensor back = from_dlpack(out);  // and home again
  EXPECT_EQ(back.data_ptr<float>(), memory);
  EXPECT_EQ(back[19][29].item<float>(), 599);
  back.fill_(1);
  EXPECT_EQ(memory[0], 1);
}

template <class F> void imports_from() {
  F f;
  for (int i = 0; i < 24; ++i) reinterpret_cast<float*>(f.memory)[i] = static_cast<float>(i);
  {
    const Tensor t = from_dlpack(&f.managed), view = t[1];
    EXPECT_EQ(t.data_ptr(), f.memory);
    EXPECT_EQ(t.sizes(), (IntArrayRef{2, 3, 4}));
    EXPECT_TRUE(t.equal(arange(24, TensorOptions(kFloat)).view({2, 3, 4})));
    t.mul_(2);
    EXPECT_EQ(reinterpret_cast<float*>(f.memory)[5], 10);
    EXPECT_EQ(f.given_back, 0);
    // The last holder may be another thread's.
    std::thread([mine = std::move(view)]() mutable { mine.reset(); }).join();
    EXPECT_EQ(f.given_back, 0);
    std::thread([mine = t]() mutable { mine.reset(); }).join();
    EXPECT_EQ(f.given_back, 0);
  }
  EXPECT_EQ(f.given_back, 1);
  // Without strides, with an offset, from the middle; a dimension of 1 with any stride.
  f.managed.dl_tensor.strides = nullptr;
  f.managed.dl_tensor.byte_offset = 16;
  f.sizes[0] = 1;
  EXPECT_TRUE(
      from_dlpack(&f.managed).equal((arange(12, TensorOptions(kFloat)) * 2 + 8).view({1, 3, 4})));
  f.managed.dl_tensor.strides = f.strides;
  f.strides[0] = -7;
  EXPECT_EQ(from_dlpack(&f.managed).sizes(), (IntArrayRef{1, 3, 4}));
  EXPECT_EQ(f.given_back, 3);
  f.sizes[1] = 0;
  f.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&f.managed).numel(), 0);
  f.managed.dl_tensor.ndim = 0;
  f.managed.dl_tensor.shape = nullptr;
  f.managed.dl_tensor.data = f.memory;
  EXPECT_EQ(from_dlpack(&f.managed).template item<float>(), 8);
  f.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&f.managed).dim(), 0);
  EXPECT_EQ(f.given_back, 5);
}
TEST(Dlpack, ImportsWithoutACopyAndGivesBackOnce) {
  imports_from<Old>();
  imports_from<New>();
}

TEST(Dlpack, ReadOnlyMemoryIsCopiedBeforeItIsWritten) {
  New f;
  f.managed.flags = 1;
  {
    Tensor t = from_dlpack(&f.managed);
    EXPECT_EQ(t.data_ptr(), f.memory);
    DLManagedTensorVersioned* out = to_dlpack_versioned(t);
    EXPECT_EQ(out->flags & 1, 1u);  // passed on
    out->deleter(out);
    t.add_(1);
    EXPECT_EQ(t[0][0][0].item<float>(), 1);
    EXPECT_EQ(reinterpret_cast<float*>(f.memory)[0], 0);
    EXPECT_EQ(f.given_back, 1);
    out = to_dlpack_versioned(t);  // its own by now
    EXPECT_EQ(out->flags & 1, 0u);
    out->deleter(out);
  }
  EXPECT_EQ(f.given_back, 1);
  New g;
  g.managed.flags = 1;
  const Tensor t = from_dlpack(&g.managed);
  DLManagedTensor* old = to_dlpack(t);  // the old struct cannot say so: a copy
  EXPECT_NE(old->dl_tensor.data, g.memory);
  old->deleter(old);
  DLManagedTensorVersioned* said = to_dlpack_versioned(ones({2}), true);
  EXPECT_EQ(said->flags & 1, 1u);
  said->deleter(said);
}

TEST(Dlpack, RefusesByNameAndTakesNothingOver) {
  EXPECT_ERROR_TEXT(to_dlpack(Tensor()), "[to_dlpack] undefined tensor");
  EXPECT_ERROR_TEXT(to_dlpack(ones({2}).requires_grad_()), "requires a gradient");
  EXPECT_ERROR_TEXT(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), "null pointer");
  const auto refused = [](const std::string& part, const auto& change) {
    New f;
    change(f);
    EXPECT_ERROR_TEXT(from_dlpack(&f.managed), part);
    EXPECT_EQ(f.given_back, 0) << part;
  };
  refused("complex elements", [](New& f) { f.managed.dl_tensor.dtype = {5, 64, 1}; });
  refused("4 lanes", [](New& f) { f.managed.dl_tensor.dtype.lanes = 4; });
  refused("16 bits of DLPack's type code 1 (uint)", [](New& f) {
    f.managed.dl_tensor.dtype = {1, 16, 1};
  });
  refused("8 bits of DLPack's type code 10", [](New& f) {
    f.managed.dl_tensor.dtype = {10, 8, 1};
  });
  refused("negative strides", [](New& f) { f.strides[1] = -4; });
  refused("none negative", [](New& f) { f.sizes[1] = -1; });
  refused("of CPU 1, expected device_id 0",
          [](New& f) { f.managed.dl_tensor.device.device_id = 1; });
  refused("card 0", [](New& f) { f.managed.dl_tensor.device.device_type = kDLCUDA; });
  refused("device type 8",
          [](New& f) { f.managed.dl_tensor.device.device_type = static_cast<DLDeviceType>(8); });
  refused("not aligned to elements of 4 bytes",
          [](New& f) { f.managed.dl_tensor.byte_offset = 2; });
  refused("a null pointer for sizes", [](New& f) { f.managed.dl_tensor.data = nullptr; });
  refused("no sizes", [](New& f) { f.managed.dl_tensor.shape = nullptr; });
  refused("65 dimensions", [](New& f) { f.managed.dl_tensor.ndim = 65; });
  refused("-1 dimensions", [](New& f) { f.managed.dl_tensor.ndim = -1; });
  refused("version 2.0", [](New& f) { f.managed.version = {2, 0}; });
  refused("more than an int64", [](New& f) { f.sizes[0] = f.sizes[1] = INT64_MAX; });
  refused("more than an int64", [](New& f) { f.strides[0] = INT64_MAX; });
  refused("less than 2^47", [](New& f) { f.strides[0] = int64_t{1} << 50; });
}

TEST(Dlpack, NumpyAndPyTorch) {
  if (!python("check_dlpack.py $(ls tests/nn/formats/*dlpack_plugin.so | head -1)"))
    std::cout << "(python3 has neither NumPy nor PyTorch)\n";
}

// ---- Eigen --------------------------------------------------------------------------------------

TEST(Eigen, MapsMeanTheSamePlaces) {
  const Tensor t = arange(12, TensorOptions(kFloat)).view({3, 4});
  auto m = as_eigen_row_major<float>(t);
  EXPECT_EQ(m.data(), t.data_ptr<float>());
  EXPECT_EQ(m(1, 2), t[1][2].item<float>());
  m(2, 0) = 50;
  EXPECT_EQ(t[2][0].item<float>(), 50);
  const Tensor cut = t.transpose(0, 1).slice(0, 1, 4, 2);  // any strides
  const auto c = as_eigen_row_major<const float>(cut);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_EQ(c(i, j), cut[i][j].item<float>());
  const Tensor column = t.select(1, 3);
  EXPECT_EQ(as_eigen_vector<float>(column).sum(), column.sum().item<float>());
  const Tensor a = randn({3, 4}, kDouble), b = randn({4, 5}, kDouble);
  EXPECT_TRUE(from_eigen(as_eigen_row_major<double>(a) * as_eigen_row_major<double>(b))
                  .allclose(a.mm(b), 1e-12, 1e-12));
  EXPECT_ERROR_TEXT(as_eigen_row_major<double>(t), "expected elements of float64");
  EXPECT_ERROR_TEXT(as_eigen_row_major<float>(t[0]), "expected 2 dimensions");
  EXPECT_ERROR_TEXT(as_eigen_vector<float>(t), "expected 1 dimensions");
  EXPECT_ERROR_TEXT(as_eigen_vector<float>(Tensor()), "undefined");
}

TEST(Eigen, TensorsOfMatrices) {
  Eigen::MatrixXd m(2, 3);  // column-major
  m << 1, 2, 3, 4, 5, 6;
  const Tensor rows = tensor({{1., 2., 3.}, {4., 5., 6.}}, kDouble);
  const Tensor copy = from_eigen(m), view = view_of_eigen(m);
  EXPECT_TRUE(copy.equal(rows) && copy.is_contiguous());
  EXPECT_TRUE(view.equal(rows));
  EXPECT_EQ(view.strides(), (IntArrayRef{1, 2}));
  view[1][0] = 9;
  EXPECT_EQ(m(1, 0), 9);
  EXPECT_EQ(copy[1][0].item<double>(), 4);
  RowMajorMatrix<float> r = RowMajorMatrix<float>::Constant(2, 2, 3);
  EXPECT_EQ(view_of_eigen(r).strides(), (IntArrayRef{2, 1}));
  Eigen::VectorXf v = Eigen::VectorXf::LinSpaced(4, 0, 3);
  EXPECT_EQ(view_of_eigen(v).sizes(), (IntArrayRef{4}));
  EXPECT_TRUE(from_eigen(v.transpose() * 2).equal(arange(4, TensorOptions(kFloat)) * 2));
  EXPECT_TRUE(from_eigen((v.array() > 1).eval()).equal(tensor({false, false, true, true})));
  EXPECT_EQ(from_eigen(Eigen::MatrixXi(0, 3)).sizes(), (IntArrayRef{0, 3}));
  const double* memory = m.data();
  const Tensor owner = own_eigen(std::move(m));
  EXPECT_EQ(owner.data_ptr<double>(), memory);
  EXPECT_EQ(owner[1][0].item<double>(), 9);
}

// ---- ONNX ---------------------------------------------------------------------------------------

// What each model consists of. The text was checked in after ONNX Runtime had computed every model
// (data/check_onnx.py); RAMET_WRITE_GOLDENS=1 writes it again.
TEST(Onnx, EveryLayerBecomesItsOperators) {
  const fs::path golden = "tests/nn/formats/goldens/onnx.txt", out = folder("onnx");
  std::string text;
  for (const OnnxModel& m : onnx_models()) {
    text += m.name + "\n" + onnx_text(m.bytes);
    EXPECT_EQ(integer_of(m.bytes, 1), 8) << "IR version";
    EXPECT_EQ(integer_of(text_of(m.bytes, 8), 2), 17) << "operator set";
    std::ofstream(out / (m.name + ".onnx"), std::ios::binary) << m.bytes;
    serialize::Safetensors numbers;
    for (size_t i = 0; i < m.inputs.size(); ++i)
      numbers.tensors.emplace_back("in_" + std::to_string(i), m.inputs[i]);
    for (size_t i = 0; i < m.outputs.size(); ++i)
      numbers.tensors.emplace_back("out_" + std::to_string(i), m.outputs[i]);
    save_safetensors((out / (m.name + ".safetensors")).string(), numbers);
  }
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
  if (!python("check_onnx.py " + out.string()))
    std::cout << "(python3 has no onnx or no onnxruntime: the models were not run)\n";
  fs::remove_all(out);
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
  // Tied weights are one tensor; a weight that is computed is as it is.
  nn::Linear tied(3, 3);
  const auto once =
      formats::onnx_bytes(*nn::Sequential(tied, nn::Tanh(), tied), {ones({2, 3})}, {},
                          [&](const std::vector<Tensor>& x) {
                            return std::vector<Tensor>{nn::call(*tied, nn::call(*tied, x[0]))};
                          });
  EXPECT_EQ(fields_of(text_of(once, 7), 5).size(), 2u);
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
template <class F> std::string refusal(F f, const OnnxOptions& options = {}) {
  const auto m = std::make_shared<FunctionalImpl<F>>(f);
  const fs::path path = folder("onnx_refused") / "net.onnx";
  std::string text = error_of([&] { export_onnx(m, randn({2, 3}), path.string(), options); });
  EXPECT_FALSE(fs::exists(path)) << text;
  EXPECT_TRUE(m->is_training() && !m->forward_hooks()) << text;
  return text;
}

TEST(Onnx, RefusesByTheModulesPath) {
  const auto refused = [](const auto& module, IntArrayRef sizes, const std::string& part) {
    const nn::Sequential net(nn::Identity(), nn::Sequential(nn::Identity(), module));
    EXPECT_ERROR_TEXT(export_onnx(net, zeros(sizes), "/nowhere/net.onnx"), "'1.1': " + part);
  };
  refused(nn::Conv1d(nn::Conv1dOptions(2, 2, 3).padding(1).padding_mode(kCircular)), {1, 2, 5},
          "circular padding");
  refused(nn::AdaptiveAvgPool1d(3), {1, 2, 5}, "pools 5 places to 3");
  refused(nn::AvgPool1d(nn::AvgPool1dOptions(2).ceil_mode(true)), {1, 2, 5}, "ceil_mode");
  refused(nn::AvgPool2d(nn::AvgPool2dOptions(2).divisor_override(3)), {1, 2, 4, 4}, "divisor");
  refused(nn::BatchNorm1d(nn::BatchNorm1dOptions(2).track_running_stats(false)), {3, 2},
          "a batch norm without running statistics");
  refused(nn::PixelShuffle(2), {4, 3, 3}, "PixelShuffle");
  EXPECT_ERROR_TEXT(export_onnx(nn::Conv2d(1, 1, 1), zeros({1, 1, 2, 2}), "/nowhere/net.onnx"),
                    "/nowhere");
  EXPECT_ERROR_TEXT(export_onnx(nn::Linear(2, 2), zeros({0, 2}), "x"), "expected an example");
  EXPECT_ERROR_TEXT(export_onnx(nn::Linear(2, 2), std::vector<Tensor>(2, ones({1, 2})), "x"),
                    "does not take 2 tensors");
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
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x.pow(3)); }),
              "in the forward of '': what 'fc' is given, float32[2, 3] on cpu, comes by an "
              "operation that cannot be exported: got PowBackward0");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x) * 2; }), "an output");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x) + ones({3}); }),
              "with something that no input leads to");
  expect_part(refusal([](auto&, const Tensor&) { return ones({3}); }), "no input leads to");
  expect_part(refusal([](auto& m, const Tensor& x) { return m.fc(x).mul_(3); }), "an output");
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
  expect_part(refusal([](auto& m, const Tensor& x) {
                const Tensor zero = ones({1, 2, 3});
                return std::get<0>(m.lstm(x.unsqueeze(0), std::make_tuple(zero, zero)));
              }),
              "'lstm': an LSTM that is given its first states");
}

// ---- TensorBoard --------------------------------------------------------------------------------

// CRC-32C by its definition, a bit at a time.
uint32_t crc32c(std::string_view bytes) {
  uint32_t c = ~0u;
  for (unsigned char b : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((c >> 0) ^ (b >> bit)) & 1;
      c = c >> 1 ^ (odd ? 0x82f63b78u : 0u);
    }
  return ~c;
}

// The events of a file up to where it is cut off; check sums are looked at.
std::vector<std::string> events(const std::string& file) {
  std::vector<std::string> all;
  const auto number = [&](size_t at, auto v) {
    std::memcpy(&v, file.data() + at, sizeof v);
    return v;
  };
  const auto good = [&](size_t at, size_t n) {
    const uint32_t crc = crc32c(std::string_view(file).substr(at, n));
    return number(at + n, uint32_t{}) == (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  for (size_t at = 0; at + 12 <= file.size();) {
    const auto n = static_cast<size_t>(number(at, uint64_t{}));
    if (n > file.size() || at + 16 + n > file.size()) break;
    EXPECT_TRUE(good(at, 8) && good(at + 12, n)) << "record at " << at;
    all.push_back(file.substr(at + 12, n));
    at += 16 + n;
  }
  return all;
}
std::string_view value_of(std::string_view event) { return text_of(text_of(event, 5), 1); }

TEST(TensorBoard, WritesWhatItReads) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // published
  const fs::path runs = folder("events") / "deep" / "run";
  fs::path file;
  Tensor image = zeros({3, 2, 4});
  image[0][1][3] = 1.5;
  image[1][0][0] = 0.5;
  image[2][1][1] = NAN;
  {
    EventWriter writer(runs.string());
    file = writer.path();
    EXPECT_EQ(file.parent_path(), runs);
    EXPECT_EQ(file.filename().string().rfind("events.out.tfevents.", 0), 0u);
    writer.add_scalar("loss", 0.25, 7, 1234.5);
    writer.add_scalar("loss", INFINITY, INT64_MAX);
    writer.add_histogram("w", tensor({-1.f, 0.f, 0.f, 2.f, 2.1f, NAN, INFINITY}), 3);
    writer.add_histogram("none", empty({0}), 3);
    writer.add_image("picture", image, 5);
    nn::Linear fc(2, 1);
    const Tensor loss = fc(ones({1, 2})).tanh().sum();
    std::vector<std::pair<std::string, Tensor>> names;
    for (const auto& item : fc->named_parameters())
      names.emplace_back("fc." + item.key(), item.value());
    writer.add_graph(autograd::collect_graph({loss}, names));
  }
  const std::vector<std::string> all = events(read(file));
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(text_of(all[0], 3), "brain.Event:2");
  EXPECT_GT(real64(fields_of(all[0], 1).at(0)), 1.7e9);
  EXPECT_EQ(real64(fields_of(all[1], 1).at(0)), 1234.5);
  EXPECT_EQ(integer_of(all[1], 2), 7);
  EXPECT_EQ(integer_of(all[2], 2), INT64_MAX);
  EXPECT_EQ(text_of(value_of(all[1]), 1), "loss");
  EXPECT_EQ(real32(fields_of(value_of(all[1]), 2).at(0)), 0.25f);
  EXPECT_EQ(real32(fields_of(value_of(all[2]), 2).at(0)), INFINITY);
  const std::string_view histogram = text_of(value_of(all[3]), 5);
  const double sums[] = {-1, 2.1, 5, 3.1, 1 + 4 + 2.1 * 2.1};
  const Tensor finite = tensor({-1.f, 0.f, 0.f, 2.f, 2.1f});  // float32, as it was given
  for (uint32_t k = 1; k <= 5; ++k)
    EXPECT_NEAR(real64(fields_of(histogram, k).at(0)), sums[k - 1], 1e-6);
  const std::string_view ends = text_of(histogram, 6), counts = text_of(histogram, 7);
  ASSERT_EQ(ends.size(), counts.size());
  double below = -INFINITY, total = 0;
  for (size_t i = 0; i < ends.size(); i += 8) {
    double end, count;
    std::memcpy(&end, ends.data() + i, 8);
    std::memcpy(&count, counts.data() + i, 8);
    EXPECT_GT(end, below);
    EXPECT_EQ(count, finite.ge(below).logical_and(finite.lt(end)).sum().item<double>()) << end;
    total += count;
    below = end;
  }
  EXPECT_EQ(total, 5);
  EXPECT_EQ(real64(fields_of(text_of(value_of(all[4]), 5), 3).at(0)), 0);
  const std::string_view picture = text_of(value_of(all[5]), 4), png = text_of(picture, 4);
  EXPECT_EQ(integer_of(picture, 1), 2);
  EXPECT_EQ(integer_of(picture, 2), 4);
  EXPECT_EQ(integer_of(picture, 3), 3);
  // The chunk of pixels begins behind 8 bytes of signature and 25 of header.
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(37, 4), "IDAT");
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(png[i]); };
  const size_t n = static_cast<size_t>(byte(35)) << 8 | byte(36);
  std::string pixels(2 * (1 + 4 * 3), '?');
  uLongf size = pixels.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(pixels.data()), &size,
                       reinterpret_cast<const Bytef*>(png.data()) + 41, n),
            Z_OK);
  ASSERT_EQ(size, pixels.size());
  std::string wanted(pixels.size(), '\0');
  wanted[1 + 1] = static_cast<char>(128);           // green of (0, 0): 127.5
  wanted[13 + 1 + 3 * 3] = static_cast<char>(255);  // red of (1, 3)
  EXPECT_EQ(pixels, wanted);
  std::map<std::string, std::set<std::string>> graph;
  for (const ProtoField& node : fields_of(text_of(all[6], 4), 1)) {
    auto& inputs = graph[std::string(text_of(node.text, 1))];
    for (const ProtoField& i : fields_of(node.text, 3)) inputs.insert(std::string(i.text));
  }
  EXPECT_EQ(graph.size(), 5u);
  for (const auto& [name, inputs] : graph)
    for (const std::string& i : inputs) EXPECT_TRUE(graph.count(i)) << name << ": " << i;
  EXPECT_EQ(graph.count("fc/weight") + graph.count("fc/bias"), 2u);
  if (!python("check_tensorboard.py " + runs.string()))
    std::cout << "(python3 has no tensorboard)\n";
  fs::remove_all(runs.parent_path().parent_path());
}

TEST(TensorBoard, WhatWasFlushedIsThereWhenAProgramIsKilled) {
  const fs::path runs = folder("killed");
  const pid_t child = ::fork();
  if (child == 0) {
    EventWriter writer(runs.string());
    for (int i = 0; i < 100; ++i) writer.add_scalar("a", i, i);
    writer.flush(/*to_disk=*/true);
    writer.add_scalar("a", 100, 100);
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::string path;
  for (const auto& entry : fs::directory_iterator(runs)) path = entry.path();
  const std::string whole = read(path);
  const std::vector<std::string> all = events(whole);
  ASSERT_EQ(all.size(), 101u);
  EXPECT_EQ(integer_of(all[100], 2), 99);
  // However much of the file arrived, its complete records can be read.
  size_t complete = 0, end = 16 + all[0].size();
  for (size_t n = 0; n < whole.size(); n += 7) {
    while (complete < all.size() && end <= n)
      if (++complete < all.size()) end += 16 + all[complete].size();
    EXPECT_EQ(events(whole.substr(0, n)).size(), complete) << n;
  }
  {  // a run that goes on writes another file
    EventWriter first(runs.string(), 0), second(runs.string(), 0);
    EXPECT_NE(first.path(), second.path());
    EXPECT_NE(first.path(), path);
    first.add_scalar("a", 1, 1);
    EXPECT_EQ(events(read(first.path())).size(), 2u);  // at once
    EventWriter moved(std::move(first));
    moved.add_scalar("a", 2, 2);
    EXPECT_EQ(events(read(moved.path())).size(), 3u);
  }
  EXPECT_EQ(read(path), whole);
  fs::remove_all(runs);
}

TEST(TensorBoard, Refuses) {
  const fs::path runs = folder("refused");
  std::ofstream(runs / "file") << "x";
  EXPECT_ERROR_TEXT(EventWriter((runs / "file").string()), "cannot make the folder");
  EventWriter writer(runs.string());
  EXPECT_ERROR_TEXT(writer.add_histogram("a", Tensor(), 0), "undefined");
  EXPECT_ERROR_TEXT(writer.add_image("a", Tensor(), 0), "undefined");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({2, 3, 3}), 0), "2 channels");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3, 0, 3}), 0), "0 x 3");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3}), 0), "expected (channels");
  EXPECT_ERROR_TEXT(writer.add_image("a", zeros({3, 3}, kLong), 0), "expected uint8");
  writer.add_image("grey", full({2, 2}, 7, kByte), 0);
  writer.flush();
  EXPECT_EQ(events(read(writer.path())).size(), 2u);  // of the others nothing
  fs::remove_all(runs);
}

}  // namespace
}  // namespace ramet
