// DLPack and Eigen.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

#include "autograd/ops.h"
#include "nn/formats/dlpack.h"
#include "nn/formats/eigen.h"
#include "tests/error_text.h"
#include "tests/nn/formats/dlpack_structs.h"
#include "tests/nn/formats/exchange_support.h"

namespace ramet {
namespace {

using testing::python;

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
  const uint8_t codes[] = {6, 1, 0, 0, 0, 0, 1, 1, 2, 4, 2, 2};
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
      arange(600, TensorOptions(kFloat)).view({20, 30});  // too large to lie next to its header
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
  refused("64 bits of DLPack's type code 1 (uint)", [](New& f) {
    f.managed.dl_tensor.dtype = {1, 64, 1};
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
  refused("further than memory", [](New& f) { f.sizes[0] = f.sizes[1] = INT64_MAX; });
  refused("further than memory", [](New& f) { f.strides[0] = INT64_MAX; });
  refused("less than 2^47", [](New& f) { f.strides[0] = int64_t{1} << 50; });
}

TEST(Dlpack, NumpyAndPyTorch) {
  const std::string plugin = "tests/nn/formats/libdlpack_plugin.so";
  if (!std::filesystem::exists(plugin))
    GTEST_SKIP() << "no " << plugin << ": sanitizers' objects make no library";
  if (!python("check_dlpack.py " + plugin))
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

}  // namespace
}  // namespace ramet
