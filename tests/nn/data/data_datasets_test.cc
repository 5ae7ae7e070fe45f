// Datasets, transforms, and the whole-batch dataset against the path of single examples.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nn/data/datasets.h"
#include "nn/data/gather_dataset.h"
#include "nn/data/transforms.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

using namespace data;
namespace t = data::transforms;

template <class T> Tensor of(const std::vector<T>& values, const std::vector<int64_t>& sizes) {
  Tensor x(TensorBase::empty(sizes, ScalarTypeOf<T>::value, Device(kCPU, 0)));
  if (!values.empty()) std::memcpy(x.data_ptr(), values.data(), x.nbytes());
  return x;
}
std::vector<float> floats(const Tensor& x) {
  const Tensor dense = x.contiguous();
  return {dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel()};
}

struct Squares : datasets::Dataset<Squares> {
  Example<> get(size_t i) override {
    const auto v = static_cast<float>(i);
    return {of<float>({v, v * v}, {1, 1, 2}), of<int64_t>({static_cast<int64_t>(i)}, {})};
  }
  std::optional<size_t> size() const override { return 10; }
};

TEST(Datasets, MapsInOrder) {
  auto set = Squares()
                 .map(t::TensorLambda<>([](Tensor x) { return x.add(1); }))
                 .map(t::Normalize<>(0.5, 2.0))
                 .map(t::Stack<>());
  EXPECT_EQ(set.size().value(), 10u);
  const size_t indices[] = {3, 0};
  const Example<> batch = set.get_batch(indices);
  EXPECT_EQ(batch.data.sizes(), IntArrayRef({2, 1, 1, 2}));
  EXPECT_EQ(floats(batch.data), (std::vector<float>{1.75f, 4.75f, 0.25f, 0.25f}));
  EXPECT_EQ(batch.target.sizes(), IntArrayRef(2));
  EXPECT_EQ(batch.target.data_ptr<int64_t>()[0], 3);
}

TEST(Datasets, MapOfANamedDatasetCopiesIt) {
  Squares squares;
  auto mapped =
      squares.map(t::Lambda<Example<>>([](Example<> e) { return Example<>(e.target, e.data); }));
  EXPECT_EQ(mapped.get_batch(ArrayRef<size_t>(2)).at(0).target.numel(), 2);
  EXPECT_EQ(squares.get(2).data.numel(), 2);
}

TEST(Datasets, NormalizePerChannel) {
  t::Normalize<> normalize({1.0, 2.0}, {2.0, 4.0});
  EXPECT_EQ(floats(normalize(of<float>({3, 5, 6, 10}, {2, 1, 2}))),
            (std::vector<float>{1, 2, 1, 2}));
}

TEST(Datasets, Collate) {
  auto set =
      Squares().map(t::Collate<float, std::vector<Example<>>>([](std::vector<Example<>> examples) {
        float sum = 0;
        for (const Example<>& e : examples) sum += floats(e.data)[1];
        return sum;
      }));
  const size_t indices[] = {1, 2, 3};
  EXPECT_EQ(set.get_batch(indices), 14.0f);
}

TEST(Datasets, TensorDatasetIsItsRows) {
  datasets::TensorDataset set(of<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  EXPECT_EQ(set.size().value(), 3u);
  const Tensor row = set.get(1);
  EXPECT_EQ(floats(row), (std::vector<float>{3, 4}));
  EXPECT_THROW(set.get(3), IndexError);
  const datasets::TensorDataset stacked({of<float>({1}, {1}), of<float>({2}, {1})});
  EXPECT_EQ(stacked.size().value(), 2u);
  auto batches = std::move(set).map(t::Stack<TensorExample>());
  EXPECT_EQ(set.size().value(), 3u) << "moved from, it still knows its size";
  const size_t indices[] = {2, 0};
  EXPECT_EQ(floats(batches.get_batch(indices)), (std::vector<float>{5, 6, 1, 2}));
  EXPECT_THROW(datasets::TensorDataset(of<float>({1}, {})), Error);
  // Not counted from the end.
  EXPECT_THROW(datasets::TensorDataset(of<float>({1, 2}, {2})).get(SIZE_MAX), IndexError);
}

// Asked for how many, not for which.
struct Counted : datasets::StreamDataset<Counted, std::vector<int>> {
  int next = 0;
  std::vector<int> get_batch(size_t number) override {
    std::vector<int> out;
    for (size_t i = 0; i < number; ++i) out.push_back(next++);
    return out;
  }
  std::optional<size_t> size() const override { return std::nullopt; }
};

TEST(Datasets, AStreamIsAskedForANumber) {
  using Sum = transforms::BatchLambda<std::vector<int>, int>;
  auto sums = Counted().map(Sum([](std::vector<int> v) { return v.front() + v.back(); }));
  static_assert(!decltype(sums)::is_stateful, "");
  EXPECT_EQ(sums.get_batch(3), 0 + 2);
  EXPECT_EQ(sums.get_batch(2), 3 + 4);
}

TEST(Datasets, SharedDatasetIsOneObject) {
  auto shared = datasets::make_shared_dataset<Squares>();
  auto copy = shared;
  EXPECT_EQ(&*shared, &*copy);
  EXPECT_EQ(shared->size().value(), 10u);
  EXPECT_EQ(copy.get_batch(ArrayRef<size_t>(4)).size(), 1u);
}

TEST(Datasets, StackRefusesUnequalAndEmpty) {
  EXPECT_THROW(t::Stack<>().apply_batch({}), Error);
  const auto refused = error_of([] {
    t::Stack<>().apply_batch({{of<float>({1}, {1}), of<float>({1}, {1})},
                              {of<float>({1, 2}, {2}), of<float>({1}, {1})}});
  });
  expect_part(refused, "float32[2] on cpu at entry 1");
}

TEST(Datasets, StackTakesAnyLayout) {
  const Tensor rows = of<float>({1, 2, 3, 4}, {2, 2});
  const Tensor out = t::detail::stack_examples({rows.t(), rows});
  EXPECT_EQ(floats(out), (std::vector<float>{1, 3, 2, 4, 1, 2, 3, 4}));
}

// ---- GatherDataset ------------------------------------------------------------------------------

// Byte images of several channels, by the slow path: convert, divide, Normalize, Stack.
TEST(GatherDataset, SameBitsAsSingleExamples) {
  const int64_t n = 7, channels = 3;
  std::vector<uint8_t> bytes(static_cast<size_t>(n * channels * 20));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 29 + i / 7);
  const Tensor rows = of(bytes, {n, channels, 4, 5});
  const Tensor targets = of<int64_t>({0, 10, 20, 30, 40, 50, 60}, {n});
  for (const std::vector<double>& mean : {std::vector<double>{0.2860406}, {0.1, 0.2, 0.3}}) {
    const std::vector<double> stddev = {0.35302424};
    datasets::GatherDataset whole(rows, targets);
    whole.normalize(mean, stddev);
    const size_t indices[] = {6, 0, 3, 3};
    const Example<> batch = whole.get_batch(indices);
    t::Normalize<> normalize(mean, stddev);
    std::vector<Tensor> expected;
    for (size_t i : indices) {
      expected.push_back(normalize(rows[static_cast<int64_t>(i)].to(kFloat).div(255)));
      EXPECT_EQ(batch.target.data_ptr<int64_t>()[expected.size() - 1],
                static_cast<int64_t>(10 * i));
    }
    const Tensor slow = t::detail::stack_examples(expected);
    ASSERT_EQ(batch.data.sizes(), slow.sizes());
    EXPECT_EQ(std::memcmp(batch.data.data_ptr(), slow.data_ptr(), slow.nbytes()), 0);
  }
}

template <class T> void check_numbers(double divisor) {
  const std::vector<T> values = {T(0), T(1), T(2), T(3), T(100), T(127)};
  datasets::GatherDataset set(of<T>(values, {3, 2}), of<float>({0.5f, 1.5f, 2.5f}, {3, 1}));
  set.divide_by(divisor).normalize(1.0, 4.0);
  const size_t indices[] = {2, 1};
  const Example<> batch = set.get_batch(indices);
  const double expected[] = {(100 / divisor - 1) / 4, (127 / divisor - 1) / 4,
                             (2 / divisor - 1) / 4, (3 / divisor - 1) / 4};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(batch.data.data_ptr<float>()[i], expected[i], 1e-5);
  EXPECT_EQ(floats(batch.target), (std::vector<float>{2.5f, 1.5f}));
  EXPECT_EQ(batch.target.sizes(), IntArrayRef({2, 1}));
}

TEST(GatherDataset, EveryElementType) {
  check_numbers<uint8_t>(255);
  check_numbers<uint8_t>(2);
  check_numbers<int8_t>(1);
  check_numbers<int16_t>(3);
  check_numbers<int32_t>(1);
  check_numbers<int64_t>(1);
  check_numbers<float>(5);
  check_numbers<double>(1);
  check_numbers<Half>(1);
  check_numbers<BFloat16>(1);
}

TEST(GatherDataset, DefaultsAndEmptyBatches) {
  datasets::GatherDataset set(of<uint8_t>({0, 51, 255}, {3}), of<int64_t>({1, 2, 3}, {3}));
  EXPECT_EQ(set.size().value(), 3u);
  const size_t indices[] = {2, 1};
  EXPECT_EQ(floats(set.get_batch(indices).data), (std::vector<float>{1.0f, 51.0f / 255.0f}));
  EXPECT_EQ(set.get_batch({}).data.sizes(), IntArrayRef(0));
  datasets::GatherDataset moved = std::move(set);
  EXPECT_EQ(set.size().value(), 3u);
}

TEST(GatherDataset, WrongArgumentsAreErrors) {
  const Tensor rows = of<uint8_t>({1, 2, 3, 4, 5, 6}, {2, 3}), targets = of<int64_t>({1, 2}, {2});
  EXPECT_THROW(datasets::GatherDataset(rows, of<int64_t>({1}, {1})), Error);
  EXPECT_THROW(datasets::GatherDataset(Tensor(), targets), Error);
  EXPECT_THROW(datasets::GatherDataset(Tensor(TensorBase::empty({0}, kBool, Device(kCPU, 0))),
                                       of<int64_t>({}, {0})),
               Error);
  datasets::GatherDataset set(rows, targets);
  EXPECT_THROW(set.normalize({1.0, 2.0}, 1.0), Error);
  EXPECT_THROW(set.normalize(1.0, 0.0), Error);
  EXPECT_THROW(set.divide_by(0), Error);
  const size_t indices[] = {0, 2};
  EXPECT_THROW(set.get_batch(indices), IndexError);
}

}  // namespace
}  // namespace ramet
