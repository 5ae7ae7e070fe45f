// What programs read of a tensor other than its values: dtype(), type(), accessors, grad_fn(). The
// texts are those that LibTorch 2.15 prints.
#include "autograd/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ivalue.h"
#include "autograd/ops.h"
#include "runtime/base/logging.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

template <class T> std::string text(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

ScalarType taken(ScalarType t) { return t; }
ScalarType taken_if(std::optional<ScalarType> t) { return t.value_or(ScalarType::Undefined); }

TEST(TensorDtype, PrintsAsLibTorchs) {
  EXPECT_EQ(text(ones({2}).dtype()), "float");
  EXPECT_EQ(text(tensor({1, 2}).dtype()), "long int");
  EXPECT_EQ(text(Tensor().dtype()), "nullptr (uninitialized)");
  EXPECT_EQ(text(ones({2}, kByte).scalar_type()), "Byte");
  EXPECT_EQ(text(TensorOptions().dtype()), "float");
  EXPECT_EQ(text(get_default_dtype()), "float");
  EXPECT_EQ(ones({2}, kHalf).dtype().name(), "c10::Half");
}

TEST(TensorDtype, GoesWhereAScalarTypeGoes) {
  const Tensor x = ones({2}, kDouble), i = ones({2}, kLong);
  EXPECT_EQ(x.dtype(), kDouble);
  EXPECT_EQ(kDouble, x.dtype());
  EXPECT_NE(x.dtype(), i.dtype());
  EXPECT_TRUE(x.dtype() == x.scalar_type() && x.options().dtype() == x.dtype());
  EXPECT_EQ(taken(x.dtype()), kDouble);
  EXPECT_EQ(taken_if(x.dtype()), kDouble);
  const ScalarType chosen = i.numel() == 2 ? x.dtype() : kFloat;
  EXPECT_EQ(chosen, kDouble);
  const std::optional<ScalarType> maybe = x.dtype();
  EXPECT_EQ(maybe, kDouble);
  switch (x.dtype()) {
    case kDouble: break;
    default: ADD_FAILURE();
  }
  std::map<ScalarType, int> ordered{{kDouble, 1}};
  EXPECT_EQ(ordered[x.dtype()], 1);
  std::unordered_map<TypeMeta, int> hashed{{x.dtype(), 2}};
  EXPECT_EQ(hashed.at(TypeMeta::Make<double>()), 2);
  TypeMeta type;
  type = kInt;
  EXPECT_TRUE(type.Match<int>() && type.isScalarType(kInt));
  // To factories, casts and reductions.
  EXPECT_EQ(zeros({2}, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(zeros({2}, i.options().dtype(x.dtype())).dtype(), kDouble);
  EXPECT_EQ(full({2}, 1, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(arange(3, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(tensor({1, 2}, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(i.to(x.dtype()).dtype(), kDouble);
  EXPECT_EQ(i.to(kCPU, x.dtype()).dtype(), kDouble);
  EXPECT_FALSE(x.to(x.dtype(), false, true).is_same(x));
  EXPECT_EQ(i.toType(x.dtype()).dtype(), kDouble);
  EXPECT_EQ(x.view(i.dtype()).dtype(), kLong);
  EXPECT_EQ(i.sum(x.dtype()).dtype(), kDouble);
  EXPECT_EQ(i.mean({0}, true, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(ones({2}).norm(2, x.dtype()).dtype(), kDouble);
  EXPECT_EQ(ones({2}).softmax(0, x.dtype()).dtype(), kDouble);
}

TEST(TensorType, NamesBackendAndElement) {
  const Tensor x = ones({2}), i = ones({2}, kInt);
  EXPECT_EQ(text(x.type()), "CPUFloatType");
  EXPECT_EQ(i.type().toString(), "CPUIntType");
  EXPECT_EQ(text(Tensor().type()), "UndefinedType");
  EXPECT_EQ(text(x.type().cuda()), "CUDAFloatType");
  EXPECT_EQ(text(x.type().backend()), "CPU");
  EXPECT_TRUE(x.type() == ones({}).type() && x.type() != i.type());
  EXPECT_FALSE(x.type().is_cuda() || x.type().is_sparse());
  EXPECT_EQ(x.type().scalarType(), kFloat);
  EXPECT_EQ(&x.type().toScalarType(kInt), &i.type());
  EXPECT_EQ(zeros({2}, i.type()).dtype(), kInt);
  EXPECT_EQ(x.to(i.type()).dtype(), kInt);
  EXPECT_EQ(x.toType(i.type()).type(), i.type());
  EXPECT_TRUE(x.toBackend(Backend::CPU).is_same(x));
  EXPECT_EQ(x.type().options(Device(kCPU, 1)).device(), Device(kCPU, 1));
  EXPECT_ERROR_TEXT(x.type().options(Device(kCUDA, 0)), "type");
  EXPECT_ERROR_TEXT(Tensor().type().options(), "undefined");
}

TEST(TensorData, OlderNamesAndQuestions) {
  const Tensor x = tensor({1., 2., 3., 4.}).view({2, 2}), view = x.t();
  EXPECT_EQ(x.data<float>(), x.data_ptr<float>());
  EXPECT_FALSE(x.data().is_same(x));
  EXPECT_ERROR_TEXT(x.data<int>(), "expected scalar type Int");
  EXPECT_TRUE(view.is_alias_of(x) && !x.clone().is_alias_of(x));
  EXPECT_TRUE(view.is_non_overlapping_and_dense());
  EXPECT_FALSE(x.expand({3, 2, 2}).is_non_overlapping_and_dense());
  EXPECT_TRUE(x.has_storage() && !Tensor().has_storage());
  EXPECT_FALSE(x.is_sparse() || x.is_quantized() || x.is_complex() || x.is_meta());
  const Tensor made = autograd::make_variable(x, true);
  EXPECT_TRUE(made.is_alias_of(x) && made.requires_grad() && made.is_leaf() && !made.is_same(x));
}

// As a kernel takes it: by value.
template <class Accessor> float sum_of(Accessor a) {
  float sum = 0;
  for (int i = 0; i < static_cast<int>(a.size(0)); ++i)
    for (int j = 0; j < static_cast<int>(a.size(1)); ++j) sum = sum * 10 + a[i][j];
  return sum;
}

TEST(PackedAccessor, ReadsAndWritesThroughItsOwnStrides) {
  Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const auto a = x.t().packed_accessor32<float, 2>();
  static_assert(std::is_trivially_copyable<decltype(a)>::value, "kernels take it by value");
  static_assert(std::is_same<decltype(a.size(0)), int32_t>::value, "");
  EXPECT_EQ(sum_of(a), 142536);
  EXPECT_EQ(a.stride(0), 1);
  EXPECT_EQ(a.stride(1), 3);
  const auto b = x.packed_accessor64<float, 2, RestrictPtrTraits>();
  EXPECT_EQ(sum_of(b), 123456);
  EXPECT_EQ(sum_of(b.transpose(0, 1)), 142536);
  b[1][0] = 7;
  EXPECT_EQ(x.index({1, 0}).item<float>(), 7);
  const PackedTensorAccessor32<const float, 2> c = x.packed_accessor32<const float, 2>();
  EXPECT_EQ(c[1][0], 7);
  const auto one = x.select(0, 0).packed_accessor64<float, 1>();
  EXPECT_EQ(one[2], 3);
  EXPECT_EQ((x.accessor<float, 2>()[1].sizes()), IntArrayRef({3}));
  expect_part(error_of([&] { x.packed_accessor32<float, 3>(); }), "dimensions");
  EXPECT_ERROR_TEXT(a.size(2), "dimension");
  EXPECT_ERROR_TEXT(a.transpose(0, 2), "dimension");
}

TEST(Tensor, StorageIsAllOfItsMemory) {
  Storage storage;
  EXPECT_FALSE(storage);
  EXPECT_EQ(storage.nbytes() + storage.use_count(), 0u);
  for (const int64_t n : {6, 6000}) {  // next to the tensor, and in a block of its own
    Tensor x = arange(n, kFloat), other = zeros({n});
    const Tensor view = x.slice(0, 2, 4);
    storage = view.storage();
    EXPECT_TRUE(storage);
    EXPECT_EQ(storage.nbytes(), static_cast<size_t>(4 * n));
    EXPECT_EQ(storage.device(), x.device());
    EXPECT_EQ(storage.data(), x.data_ptr());
    EXPECT_EQ(storage.data_ptr().get(), x.data_ptr());
    EXPECT_EQ(storage.data_ptr().device(), Device(kCPU, 0));
    EXPECT_EQ(storage.use_count(), 2u);  // x and view
    EXPECT_TRUE(storage.is_alias_of(x.storage()));
    EXPECT_EQ(storage.unsafeGetStorageImpl(), x.storage().unsafeGetStorageImpl());
    EXPECT_FALSE(storage.is_alias_of(other.storage()));
    EXPECT_TRUE(other.storage().unique());
    // Tensors of any dtype and sizes show it, also when nothing else holds it any more.
    other.set_(storage);
    EXPECT_EQ(other.sizes(), IntArrayRef({n}));
    EXPECT_TRUE(other.is_alias_of(x));
    Tensor columns = empty({0});
    columns.set_(storage, 1, {2, 2}, {1, 2});
    EXPECT_EQ(values(columns), (std::vector<double>{1, 3, 2, 4}));
    columns.set_(storage, 2, {3});
    EXPECT_EQ(values(columns), (std::vector<double>{2, 3, 4}));
    Tensor bytes = empty({0}, kByte);
    bytes.set_(storage);
    EXPECT_EQ(bytes.numel(), 4 * n);
    x.fill_(7);
    EXPECT_EQ(other.version(), x.version());
    x = other = Tensor();
    EXPECT_EQ(values(columns), (std::vector<double>{7, 7, 7}));
    static_cast<float*>(storage.mutable_data())[3] = 8;
    EXPECT_EQ(values(columns), (std::vector<double>{7, 8, 7}));
  }
  Tensor x = empty({0});
  EXPECT_ERROR_TEXT(x.set_(storage, 5999, {2}), "out of bounds for a storage of 6000");
  EXPECT_ERROR_TEXT(x.set_(Storage()), "[set_] undefined tensor or storage");
  EXPECT_ERROR_TEXT(Tensor().storage(), "undefined tensor");
  EXPECT_ERROR_TEXT(x.requires_grad_().set_(storage), "[set_] has no derivative");
  EXPECT_ERROR_TEXT(empty({0}, Device("cpu:1")).set_(storage), "[set_]");
}

TEST(PackedAccessor, RefusesWhatDoesNotFitInto32Bits) {
  const int64_t large = int64_t{1} << 31;
  char memory = 0;
  const auto narrow = [&](IntArrayRef sizes, IntArrayRef strides) {
    const Tensor x(TensorBase(
        from_blob(&memory, {1}, kByte).view_impl(sizes, strides, 0)));  // it is never read
    return error_of([&] { x.packed_accessor32<uint8_t, 2>(); });
  };
  expect_part(narrow({1, large}, {0, 1}), "packed_accessor64");
  expect_part(narrow({2, 1}, {large, 1}), "packed_accessor64");
  expect_part(narrow({2, 2}, {large - 1, 1}), "packed_accessor64");
  EXPECT_EQ(narrow({2, 1}, {large - 1, 1}), "no error");
  const auto tiny = [](int64_t n) {
    return error_of(
        [&] { zeros({n}, kByte).generic_packed_accessor<uint8_t, 1, DefaultPtrTraits, int8_t>(); });
  };
  expect_part(tiny(128), "expected no more than 127");
  EXPECT_EQ(tiny(127), "no error");
}

TEST(IValue, NumbersFitOrAreAnError) {
  EXPECT_EQ(IValue(100).to<int8_t>(), 100);
  EXPECT_NE(error_of([] { IValue(300).to<int8_t>(); }), "no error");
  EXPECT_NE(error_of([] { IValue(int64_t{1} << 40).to<int>(); }), "no error");
  EXPECT_EQ(IValue("text").to<std::string>(), "text");
}

// What LibTorch 2.15 prints.
// As LibTorch's c10::List: handles of what is held.
TEST(IValue, ListsAreHandles) {
  const IValue v(std::vector<Tensor>{ones({2}), zeros({3})});
  const List<Tensor> list = v.toTensorList();
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.get(0).numel(), 2);
  EXPECT_EQ(v.toTensorList()[1].numel(), 3);
  EXPECT_EQ(v.toTensorList().vec().size(), 2u);
  int64_t elements = 0;
  for (const Tensor& t : v.toTensorList()) elements += t.numel();
  EXPECT_EQ(elements, 5);
  list.push_back(ones({4}));
  const IValue copy = v;  // NOLINT
  EXPECT_EQ(copy.toTensorVector().size(), 3u);
  EXPECT_TRUE(copy.to<List<Tensor>>().is(list));
  EXPECT_TRUE(IValue(list).toTensorList().is(list));
  EXPECT_EQ(IValue(IntArrayRef{3, 4}).toIntList().get(1), 4);
  EXPECT_EQ(IValue(std::vector<double>{3, 4}).toDoubleList().get(1), 4);
  EXPECT_EQ(IValue(IntArrayRef{3, 4}).to<List<int64_t>>().size(), 2u);
  EXPECT_ERROR_TEXT(v.toIntList(), "got tensor list, expected int list");
  EXPECT_NE(error_of([&] { list.get(3); }), "no error");
}

TEST(IValue, MayHoldItself) {
  IValue::GenericList list;
  IValue::GenericDict dict;
  list.push_back(1);
  list.push_back(list);
  dict.insert("a", list);
  dict.insert("b", dict);
  std::ostringstream text;
  text << IValue(list) << ' ' << IValue(dict) << ' ' << IValue(std::make_tuple(list, list));
  EXPECT_EQ(text.str(), "[1, [...]] {a: [1, [...]], b: {...}} ([1, [...]], [1, [...]])");
  // As a key it is refused, before its contents are read.
  EXPECT_ERROR_TEXT(dict.insert(list, 1), "[Dict] key: got a list, expected");
  list.clear(), dict.clear();  // else nothing frees them
  IValue deep;
  for (int i = 0; i < 300; ++i) {
    IValue::GenericList around;
    around.push_back(deep);
    deep = around;
  }
  text.str("");
  text << deep;
  EXPECT_EQ(text.str(), std::string(257, '[') + "..." + std::string(257, ']'));
}

TEST(IValue, PrintsAsLibTorchs) {
  std::ostringstream out;
  for (const IValue& v : {IValue(3.5), IValue(3.0), IValue(1e20), IValue(0.1), IValue(1.0 / 3),
                          IValue(NAN), IValue(-INFINITY), IValue(3), IValue(true),
                          IValue(std::string("a\"b")), IValue(), IValue(std::vector<int64_t>{1, 2}),
                          IValue(std::vector<double>{1, 2.5}), IValue(std::vector<int64_t>{})})
    out << v << '|';
  EXPECT_EQ(out.str(),
            "3.5|3.|1e+20|0.10000000000000001|0.33333333333333331|nan|-inf|3|True|a\"b|None|[1, 2]|"
            "[1., 2.5]|[]|");
}

// As LibTorch: 2 * {1, 2, 3}.
TEST(Backward, AGradientOfAnotherDtypeIsCast) {
  for (const ScalarType dtype : {kLong, kByte, kHalf, kDouble}) {
    const Tensor x = leaf({1, 1, 1}), seed = constant({1, 2, 3}).to(dtype);
    (x * 2).backward(seed);
    EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4, 6})) << dtype;
    EXPECT_EQ(values(autograd::grad({x * 2}, {x}, {seed})[0]), (std::vector<double>{2, 4, 6}))
        << dtype;
  }
}

TEST(GradFn, IsKeptComparedAndPrinted) {
  const Tensor w = leaf({1, 2});
  std::shared_ptr<autograd::Node> kept, none = w.grad_fn();
  EXPECT_TRUE(w.grad_fn() == nullptr && none == nullptr && !w.grad_fn());
  EXPECT_EQ(text(w.grad_fn()), "nullptr");
  {
    const Tensor y = w * w;
    EXPECT_TRUE(y.grad_fn() != nullptr && nullptr != y.grad_fn());
    EXPECT_EQ(text(y.grad_fn()), "MulBackward0");
    EXPECT_EQ(y.grad_fn(), y.grad_fn());
    EXPECT_NE(y.grad_fn(), (w * w).grad_fn());
    kept = y.grad_fn();
    EXPECT_EQ(kept.get(), y.grad_fn().get());
    EXPECT_TRUE(kept == y.grad_fn());
    std::map<autograd::NodePtr, int> ordered{{y.grad_fn(), 1}};
    std::unordered_set<autograd::NodePtr> seen{y.grad_fn()};
    EXPECT_EQ(ordered.count(kept) + seen.count(y.grad_fn()), 2u);
    EXPECT_EQ(y.grad_fn()->getptr(), y.grad_fn());
    std::ostringstream text;
    text << y.grad_fn() << " " << autograd::NodePtr();
    EXPECT_EQ(text.str(), "MulBackward0 nullptr");
  }
  const int64_t alive = autograd::nodes_alive();
  EXPECT_EQ(kept->name(), "MulBackward0");  // outlives its tensor
  const std::weak_ptr<autograd::Node> watched = kept;
  kept.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(autograd::nodes_alive(), alive - 1);
}

// The graph traversal of many a teaching program.
void walk(const autograd::NodePtr& node, std::vector<std::string>& names) {
  if (node == nullptr) return;
  names.push_back(node->name());
  for (const autograd::Edge& edge : node->next_edges())
    if (edge.is_valid()) walk(edge.function, names);
}

// A backward keeps no gradient there: LibTorch warns of it, too.
TEST(Grad, OfANonLeafWarns) {
  std::vector<std::string> heard;
  set_log_handler([&](LogLevel, const std::string& m) { heard.push_back(m); });
  const Tensor w = leaf({1, 2}), base = leaf({3, 4}).mul(2), y = w * 2;
  EXPECT_FALSE(y.grad().defined());
  ASSERT_EQ(heard.size(), 1u);
  expect_part(heard[0], "[grad] the gradient of float64[2] on cpu, which is not a leaf");
  expect_part(heard[0], "retain_grad()");
  EXPECT_FALSE(base.view({2, 1}).grad().defined());
  EXPECT_EQ(heard.size(), 2u);
  y.retain_grad();
  y.sum().backward();
  EXPECT_TRUE(y.grad().defined() && w.grad().defined());
  EXPECT_FALSE(constant({1}).grad().defined());
  EXPECT_FALSE(constant({1, 2}).view({2, 1}).grad().defined());
  EXPECT_EQ(heard.size(), 2u);
  set_log_handler({});
}

TEST(GradFn, IsWalked) {
  const Tensor w = leaf({1, 2}), v = constant({3, 4});
  const Tensor y = (w * v).sum().exp();
  std::vector<std::string> names;
  walk(y.grad_fn(), names);
  EXPECT_EQ(names, (std::vector<std::string>{"ExpBackward0", "SumBackward0", "MulBackward0",
                                             "AccumulateGrad"}));
  const autograd::edge_list edges = (w * v).grad_fn()->next_edges();
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_TRUE(edges[0].is_valid() && !edges[1].is_valid());  // v wants none
  const auto mul = (w * v).grad_fn();
  EXPECT_TRUE(mul->should_compute_output(0) && !mul->should_compute_output(1));
  EXPECT_EQ(mul->num_inputs() * 10 + mul->num_outputs(), 12u);
  EXPECT_EQ(mul->next_edge(0), edges[0]);
  EXPECT_LT(mul->sequence_nr(), (w * v).grad_fn()->sequence_nr());
  EXPECT_ERROR_TEXT(mul->next_edge(2), "[next_edge] index");
  const auto parts = varied_leaf({2, 2}).unbind(0);
  EXPECT_EQ((parts[1] * 2).grad_fn()->next_edge(0).input_nr, parts[1].output_nr());
}

}  // namespace
}  // namespace ramet
