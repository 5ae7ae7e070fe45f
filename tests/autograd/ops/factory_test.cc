#include "autograd/ops/make/factory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "autograd/ops/make/copy.h"
#include "autograd/ops/random/random.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using V = std::vector<double>;

TEST(Factory, SizesTypesDevicesAndGradients) {
  const Tensor b = ones({4}, dtype(kDouble).device(Device(kCPU, 1)).requires_grad(true));
  EXPECT_EQ(b.scalar_type(), kDouble);
  EXPECT_EQ(b.device(), Device(kCPU, 1));
  EXPECT_TRUE(b.requires_grad() && b.is_leaf());
  const int n = 3;  // one int is a shape
  EXPECT_EQ(zeros(n, Device(kCPU, 1)).numel(), 3);
  EXPECT_EQ(ones(5, requires_grad()).size(0), 5);
  EXPECT_EQ(empty({}).dim(), 0);
  EXPECT_EQ(empty({2, 0, 3}).numel(), 0);
  EXPECT_TRUE(empty({2, 3, 4, 5}, {}, MemoryFormat::ChannelsLast).stride(1) == 1);
  EXPECT_ERROR_TEXT(zeros({2, -1}), "negative dimension");
  EXPECT_ERROR_TEXT(zeros({2}, dtype(kLong).requires_grad(true)), "floating point");
  set_default_dtype(kDouble);
  EXPECT_EQ(zeros({1}).scalar_type(), kDouble);
  set_default_dtype(kFloat);
}

// Nothing wraps around in silence.
TEST(Factory, NumbersBeyondTheDtypeAreRefused) {
  for (const auto& make : std::vector<std::function<void()>>{
           [] { full({2}, 300, kByte); }, [] { full({2}, -300, kByte); },
           [] { full({2}, -2.5, kByte); }, [] { full({2}, 1e5, kHalf); },
           [] { full({2}, 1e300, kFloat); }, [] { full_like(zeros({2}, kChar), 128); },
           [] {
             tensor({1, 300}, kByte);
           },
           [] { tensor({40000}, kShort); }, [] { zeros({2}, kByte).fill_(300); },
           [] { zeros({2}, kByte).masked_fill(ones({2}, kBool), 256); },
           [] { zeros({2}, kByte).masked_fill_(ones({2}, kBool), -1.5); },
           [] {
             bernoulli(tensor({.5, 2.}));
           },
           [] {
             bernoulli(tensor({.5, -.1}));
           },
           [] {
             zeros({2}).bernoulli_(tensor({.5, NAN}));
           }})
    EXPECT_ERROR_TEXT(make(), "got");
  EXPECT_EQ(full({1}, -1, kByte).item<int>(), 255) << "LibTorch's latitude";
  EXPECT_EQ(full({1}, 2.9, kByte).item<int>(), 2);
  EXPECT_EQ(full({1}, INFINITY, kHalf).item<double>(), INFINITY);
}

TEST(Factory, LikeTakesWhatOptionsLeaveOpen) {
  const Tensor x = varied({2, 3}).t();
  EXPECT_EQ(zeros_like(x).strides(), x.strides());
  EXPECT_EQ(zeros_like(x).scalar_type(), kDouble);
  EXPECT_EQ(values(ones_like(x)), V(6, 1));
  EXPECT_EQ(full_like(x, 7, kLong).scalar_type(), kLong);
  EXPECT_TRUE(empty_like(x, {}, MemoryFormat::Contiguous).is_contiguous());
  EXPECT_EQ(x.new_zeros({5}).scalar_type(), kDouble);
  EXPECT_EQ(values(x.new_full({2}, 2.5)), (V{2.5, 2.5}));
  EXPECT_EQ(x.new_ones({2}, kFloat).scalar_type(), kFloat);
  EXPECT_EQ(x.new_empty({0}).numel(), 0);
  EXPECT_ERROR_TEXT(zeros_like(Tensor()), "undefined tensor");
}

TEST(Factory, Arange) {
  EXPECT_EQ(arange(3.).scalar_type(), kFloat);
  EXPECT_EQ(arange(0, 1, 0.1).numel(), 10);
  EXPECT_EQ(arange(INT64_MAX - 2, INT64_MAX).numel(), 2);
  EXPECT_ERROR_TEXT(arange(0, 1, 0), "step must be nonzero");
  EXPECT_ERROR_TEXT(arange(1, 0), "inconsistent with step sign");
  EXPECT_ERROR_TEXT(arange(0, INFINITY, 1), "unsupported range");
}

TEST(Factory, LinspaceAndEye) {
  EXPECT_EQ(values(linspace(0, 10, 5, kLong)), (V{0, 2, 5, 7, 10}));
  EXPECT_EQ(values(linspace(3, 9, 1)), (V{3}));
  EXPECT_EQ(linspace(0, 1, 0).numel(), 0);
  EXPECT_ERROR_TEXT(linspace(0, 1, -1), "non-negative");
  EXPECT_EQ(values(eye(3, 2)), (V{1, 0, 0, 1, 0, 0}));
}

TEST(Factory, TensorFromNumbers) {
  EXPECT_EQ(tensor(1.5).dim(), 0);
  EXPECT_EQ(tensor(1.5).scalar_type(), kFloat);
  EXPECT_EQ(tensor(7).scalar_type(), kLong);
  EXPECT_EQ(tensor(true).scalar_type(), kBool);
  EXPECT_EQ(values(tensor({1, 2, 3})), (V{1, 2, 3}));
  EXPECT_EQ(tensor({1, 2, 3}).scalar_type(), kLong);
  EXPECT_EQ(tensor({1.f, 2.f}).scalar_type(), kFloat);
  EXPECT_EQ(tensor({1.0, 2.0}, kDouble).scalar_type(), kDouble);
  const Tensor m = tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  EXPECT_EQ(m.sizes(), (IntArrayRef{3, 2}));
  EXPECT_EQ(values(m), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({{{1, 2}}, {{3, 4}}}).sizes(), (IntArrayRef{2, 1, 2}));
  EXPECT_EQ(tensor(std::vector<double>{0.5, 1.5}).scalar_type(), kFloat);
  EXPECT_EQ(tensor(std::vector<int64_t>{4, 5}).scalar_type(), kLong);
  EXPECT_EQ(values(tensor(std::vector<bool>{true, false})), (V{1, 0}));
  EXPECT_EQ(tensor({1, 2}, dtype(kFloat).requires_grad(true)).requires_grad(), true);
  EXPECT_EQ(tensor(ArrayRef<double>{}).numel(), 0);
  EXPECT_EQ(*tensor({INT64_MAX}).data_ptr<int64_t>(), INT64_MAX);
  EXPECT_ERROR_TEXT(tensor({{1, 2}, {3}}), "Expected all sub-lists to have sizes");
  EXPECT_ERROR_TEXT(tensor({1, 2.5}), "same scalar type");
  // A double that float cannot hold is rounded once; an integer too large for the dtype is an
  // Error, not a surprise.
  EXPECT_EQ(tensor(0.1).item<float>(), 0.1f);
}

TEST(Factory, OverForeignMemory) {
  float data[] = {0, 1, 2, 3, 4, 5};
  int freed = 0;
  {
    const Tensor t = from_blob(data, {2, 3});
    EXPECT_EQ(t.data_ptr<float>(), data);
    t.select(0, 1).fill_(9);
    EXPECT_EQ(data[4], 9);
    const Tensor columns = from_blob(data, {3, 2}, {1, 3});
    EXPECT_EQ(values(columns), (V{0, 9, 1, 9, 2, 9}));
    Tensor kept;
    {
      const Tensor owned = from_blob(
          data, {6}, [&](void* p) { freed += p == data; }, kFloat);
      kept = owned.slice(0, 2);
    }
    EXPECT_EQ(freed, 0);
    EXPECT_EQ(values(kept), (V{2, 9, 9, 9}));
  }
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(from_blob(data, {0}).numel(), 0);
  EXPECT_ERROR_TEXT(from_blob(nullptr, {2}), "null pointer");
  EXPECT_ERROR_TEXT(from_blob(data, {2}, IntArrayRef{1, 1}), "strides");
  // A storage's header has 48 bits: what it cannot express is refused, and no deleter is called.
  const int64_t most = (int64_t{1} << 47) / 4;
  const auto far = [&](IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
    expect_part(error_of([&] { from_blob(data, sizes, strides, offset, [&](void*) { ++freed; }); }),
                "less than 2^47 bytes");
  };
  far({most}, {1}, 0);
  far({2}, {most - 1}, 0);
  far({1}, {1}, most - 1);
  far({int64_t{1} << 40, int64_t{1} << 40}, {0, 0}, 0);
  EXPECT_ERROR_TEXT(from_blob(data, {most}), "less than 2^47");
  EXPECT_EQ(from_blob(data, {most - 1}).storage().nbytes(), size_t(most - 1) * 4);
  EXPECT_EQ(freed, 1);
}

TEST(Factory, OverAFile) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path =
      std::string(folder ? folder : "/tmp") + "/from_file_" + std::to_string(::getpid());
  const auto bytes = [&] {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto numbers_of = [](const Tensor& t) { return values(t.to(kDouble)); };
  std::ofstream(path, std::ios::binary) << "abcdefgh";
  {
    // A copy of what it writes to, and no more.
    const Tensor own = from_file(path, false, 4, kByte), part = own.slice(0, 2);
    EXPECT_EQ(numbers_of(own), (V{'a', 'b', 'c', 'd'}));
    own.fill_('x');
    EXPECT_EQ(numbers_of(part), (V{'x', 'x'}));
    EXPECT_EQ(bytes(), "abcdefgh");
    EXPECT_EQ(numbers_of(from_file(path, std::nullopt, 1, kByte)), (V{'a'}));
  }
  Tensor kept;
  {
    const Tensor both = from_file(path, true, 2, kByte);
    kept = both.slice(0, 1);
    both[0].fill_('A');
  }
  kept.fill_('B');  // the mapping goes with its last tensor
  EXPECT_EQ(bytes(), "ABcdefgh");
  // Numbers, with a history of their own.
  const double numbers[] = {0.5, -2};
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  const Tensor x =
      from_file(path, false, 2, TensorOptions(kDouble).device("cpu:1").requires_grad(true));
  x.square().sum().backward();
  EXPECT_EQ(numbers_of(x.grad()), (V{1, -4}));
  EXPECT_EQ(x.device(), Device("cpu:1"));
  // Shared, it becomes as long as it must, with zeros; private, it must be there.
  EXPECT_EQ(numbers_of(from_file(path, true, 3, kDouble)), (V{0.5, -2, 0}));
  EXPECT_EQ(bytes().size(), 24u);
  const auto refused = [&](const std::string& name, bool shared, int64_t size,
                           const TensorOptions& options, const std::string& part) {
    const std::string error = error_of([&] { from_file(name, shared, size, options); });
    expect_part(error, part);
  };
  refused(path, false, 4, kDouble, "got 24 bytes, expected at least 32");
  refused(path, false, -1, kDouble, "[from_file] size: got -1, expected 0 or more");
  refused(path, true, INT64_MAX / 4, kDouble, "[from_file] bytes");
  refused(path, true, INT64_MAX, kByte, "[from_file] cannot make \"" + path);
  refused(path, false, 1, TensorOptions().device("cuda:0"), "expected a CPU");
  refused(path, false, 1, TensorOptions().pinned_memory(true), "cannot be pinned");
  refused(path + "x", true, 1, TensorOptions(kLong).requires_grad(true), "floating");
  refused(path + "x", true, INT64_MAX, kByte, "[from_file] cannot make \"" + path);
  EXPECT_NE(::access((path + "x").c_str(), F_OK), 0) << "refused after it was made";
  refused(path + "/below", true, 1, kByte, "cannot open \"" + path + "/below\" (");
  refused("/", false, 1, kByte, "\"/\": got no regular file");
  EXPECT_EQ(bytes().size(), 24u);
  ::unlink(path.c_str());
  refused(path, false, 1, kByte, "cannot open \"" + path + "\" (No such file");
  EXPECT_EQ(from_file(path, true, 0).sizes(), IntArrayRef({0}));
  EXPECT_EQ(from_file(path, true, std::nullopt, kLong).scalar_type(), kLong);
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "nothing to map, nothing made";
  EXPECT_EQ(numbers_of(from_file(path, true, 2, kInt)), (V{0, 0}));
  EXPECT_EQ(bytes(), std::string(8, '\0'));
  ::unlink(path.c_str());
}

TEST(Factory, OneHot) {
  EXPECT_EQ(values(one_hot(tensor({0, 2, 1}))), (V{1, 0, 0, 0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(one_hot(tensor({{1}, {0}}), 4).sizes(), (IntArrayRef{2, 1, 4}));
  EXPECT_ERROR_TEXT(one_hot(tensor({3}), 3), "smaller than num_classes");
  EXPECT_ERROR_TEXT(one_hot(tensor({-1})), "non-negative");
  EXPECT_ERROR_TEXT(one_hot(ones({2})), "int64");
  EXPECT_ERROR_TEXT(one_hot(empty({0}, kLong)), "Can not infer");
}

TEST(Factory, OfCArrays) {
  float row[] = {1.5f, 2, 3};
  const double matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const int whole[] = {7, 8};
  const bool flags[] = {true, false};
  EXPECT_EQ(values(tensor(row)), (V{1.5, 2, 3}));
  EXPECT_EQ(tensor(matrix).sizes(), (IntArrayRef{2, 3}));
  EXPECT_EQ(values(tensor(matrix, kDouble)), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor(matrix).dtype(), kFloat);
  EXPECT_EQ(tensor(whole).dtype(), kLong);
  EXPECT_EQ(tensor(flags).dtype(), kBool);
  EXPECT_EQ(values(tensor(whole, kDouble)), (V{7, 8}));
  EXPECT_EQ(tensor('a').item<int>(), 97);
}

}  // namespace
}  // namespace ramet
