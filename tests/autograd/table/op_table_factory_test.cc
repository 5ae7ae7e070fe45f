// Rows of the operation table: what makes tensors from numbers. A row's function takes options;
// those that follow another tensor (_like) are rows as all others.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// ---- from options

struct Factory {
  const char* name;
  uint16_t dtypes;     ///< those LibTorch makes
  ScalarType natural;  ///< the dtype without a wish
  std::function<Tensor(const TensorOptions&)> make;
  Plain want;           ///< without elements where they are not defined
  bool others = false;  ///< the other dtypes are made too, of numbers cut to integers
};

Plain numbers(int64_t n, double first, double step) {
  return made({n}, [=](const Index& i) { return first + step * static_cast<double>(i[0]); });
}
Plain filled(const Index& sizes, double v) {
  return made(sizes, [v](const Index&) { return v; });
}

std::vector<Factory> factories() {
  using O = const TensorOptions&;
  std::vector<Factory> t;
  t.push_back({"empty", kAll, kFloat, [](O o) { return empty({2, 3}, o); }, {{2, 3}, {}}});
  t.push_back({"empty_strided",
               kAll,
               kFloat,
               [](O o) {
                 return empty_strided({2, 3}, {1, 2}, o);
               },
               {{2, 3}, {}}});
  t.push_back({"zeros", kAll, kFloat, [](O o) { return zeros({2, 3}, o); }, filled({2, 3}, 0)});
  t.push_back({"zeros.nothing", kAll, kFloat,
               [](O o) {
                 return zeros({2, 0}, o);
               },
               filled({2, 0}, 0)});
  t.push_back({"ones", kAll, kFloat, [](O o) { return ones({2, 3}, o); }, filled({2, 3}, 1)});
  t.push_back({"ones.scalar", kAll, kFloat, [](O o) { return ones({}, o); }, filled({}, 1)});
  t.push_back({"full", kAll, kLong, [](O o) { return full({2, 3}, 7, o); }, filled({2, 3}, 7)});
  t.push_back(
      {"full.fraction", kAll, kFloat, [](O o) { return full({2}, 2.5, o); }, filled({2}, 2.5)});
  t.push_back({"full.truth", kAll, kBool, [](O o) { return full({2}, true, o); }, filled({2}, 1)});
  t.push_back(
      {"scalar_tensor", kAll, kFloat, [](O o) { return scalar_tensor(3, o); }, filled({}, 3)});
  t.push_back({"arange", kNumbers, kLong, [](O o) { return arange(5, o); }, numbers(5, 0, 1)});
  t.push_back({"arange.step", kNumbers, kLong, [](O o) { return arange(7, -4, -3, o); },
               numbers(4, 7, -3)});
  t.push_back({"arange.fraction", kFloats, kFloat, [](O o) { return arange(0.5, 3, 0.5, o); },
               numbers(5, 0.5, 0.5), true});
  t.push_back(
      {"arange.nothing", kNumbers, kLong, [](O o) { return arange(2, 2, o); }, numbers(0, 0, 0)});
  t.push_back(
      {"linspace", kNumbers, kFloat, [](O o) { return linspace(1, 9, 5, o); }, numbers(5, 1, 2)});
  t.push_back({"linspace.fraction", kFloats, kFloat, [](O o) { return linspace(-1, 1, 7, o); },
               numbers(7, -1, 1.0 / 3), true});
  t.push_back({"eye", kAll, kFloat, [](O o) { return eye(3, 4, o); },
               made({3, 4}, [](const Index& i) { return double(i[0] == i[1]); })});
  t.push_back({"eye.nothing", kAll, kFloat, [](O o) { return eye(0, o); }, filled({0, 0}, 0)});
  t.push_back({"triu_indices", set_of(kInt) | set_of(kLong), kLong,
               [](O o) { return triu_indices(3, 4, 1, o); },
               Plain{{2, 6}, {0, 0, 0, 1, 1, 2, 1, 2, 3, 2, 3, 3}}});
  t.push_back({"triu_indices.below", set_of(kInt) | set_of(kLong), kLong,
               [](O o) { return triu_indices(3, 2, -1, o); },
               Plain{{2, 5}, {0, 0, 1, 1, 2, 0, 1, 0, 1, 1}}});
  t.push_back({"triu_indices.nothing", set_of(kInt) | set_of(kLong), kLong,
               [](O o) { return triu_indices(3, 4, INT64_MAX, o); }, Plain{{2, 0}, {}}});
  t.push_back({"tril_indices", set_of(kInt) | set_of(kLong), kLong,
               [](O o) { return tril_indices(3, 4, -1, o); }, Plain{{2, 3}, {1, 2, 2, 0, 0, 1}}});
  t.push_back({"tril_indices.above", set_of(kInt) | set_of(kLong), kLong,
               [](O o) { return tril_indices(3, 2, 0, o); },
               Plain{{2, 5}, {0, 1, 1, 2, 2, 0, 0, 1, 0, 1}}});
  return t;
}

// Every element whose place the mask of triu (tril) keeps, for all small matrices and diagonals.
TEST(FactoryRows, TriangleIndices) {
  for (int64_t rows = 0; rows < 5; ++rows)
    for (int64_t cols = 0; cols < 5; ++cols)
      for (int64_t k :
           {INT64_MIN, int64_t{-4}, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}, INT64_MAX}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << cols << ", diagonal " << k);
        std::vector<double> upper[2], lower[2];
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) {
            if (c - r >= k) upper[0].push_back(double(r)), upper[1].push_back(double(c));
            if (c - r <= k) lower[0].push_back(double(r)), lower[1].push_back(double(c));
          }
        const auto check = [](const Tensor& t, std::vector<double>(&want)[2]) {
          const auto n = static_cast<int64_t>(want[0].size());
          want[0].insert(want[0].end(), want[1].begin(), want[1].end());
          expect_close(t, Plain{{2, n}, want[0]});
        };
        check(triu_indices(rows, cols, k), upper);
        check(tril_indices(rows, cols, k), lower);
      }
  Tensor out = empty({0}, kInt);
  expect_close(triu_indices_out(out, 2, 2, 1), Plain{{2, 1}, {0, 1}});
  expect_close(tril_indices_out(out, 2, 2, -1), Plain{{2, 1}, {1, 0}});
  Tensor wrong = empty({0});
  EXPECT_THROW(triu_indices_out(wrong, 2, 2), Error);
}

class FactoryTable : public ::testing::TestWithParam<Factory> {};
void PrintTo(const Factory& row, std::ostream* out) { *out << row.name; }

TEST_P(FactoryTable, ValuesDtypesAndHistory) {
  const Factory& row = GetParam();
  const auto check = [&](const Tensor& t, ScalarType dtype) {
    EXPECT_EQ(t.scalar_type(), dtype);
    EXPECT_EQ(t.device(), Device(kCPU, 0));
    EXPECT_TRUE(t.is_leaf());
    EXPECT_FALSE(t.requires_grad());
    ASSERT_EQ(t.sizes().vec(), row.want.sizes);
    if (!row.want.v.empty()) { expect_close(t, row.want); }
  };
  check(row.make({}), row.natural);
  for (int i = 0; i < kScalarTypes; ++i) {
    const ScalarType dtype = static_cast<ScalarType>(i);
    SCOPED_TRACE(short_name_of(dtype));
    if (!(row.dtypes & set_of(dtype))) {
      if (!row.others) { EXPECT_THROW(row.make(TensorOptions(dtype)), Error); }
      continue;
    }
    check(row.make(TensorOptions(dtype)), dtype);
    const TensorOptions learning = TensorOptions(dtype).requires_grad(true);
    if (is_floating(dtype)) {
      const Tensor leaf = row.make(learning);
      EXPECT_TRUE(leaf.requires_grad() && leaf.is_leaf());
    } else {
      EXPECT_THROW(row.make(learning), Error);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, FactoryTable, ::testing::ValuesIn(factories()),
                         [](const ::testing::TestParamInfo<Factory>& info) {
                           std::string name = info.param.name;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

// ---- from other tensors, memory and numbers

void add_likes(Table& t) {
  const Samples some = shapes({{3, 4}, {0, 2}, {}}, -9, 9);
  const Sample large = {real({300, 131})};
  const auto row = [&](const char* name, double value, Call call) -> Row& {
    return t
        .row(name, kAll, some, std::move(call), [value](P x) { return filled(x[0].sizes, value); })
        .no_gradient()
        .big(large, 1);
  };
  row("empty_like", 1, [](V x) { return empty_like(x[0]).fill_(1); });
  row("zeros_like", 0, [](V x) { return zeros_like(x[0]); }).changes([](V x) {
    return x[0].zero_();
  });
  row("ones_like", 1, [](V x) { return ones_like(x[0]); });
  row("full_like", 3, [](V x) { return full_like(x[0], 3); }).changes([](V x) {
    return x[0].fill_(3);
  });
  row("full_like.tensor", 3, [](V x) { return full_like(x[0], 3); }).changes([](V x) {
    return x[0].fill_(scalar_tensor(3));
  });
  // The same memory, whatever the strides of the tensor it belongs to.
  t.row(
       "from_blob", kAll, some,
       [](V x) {
         const Tensor kept = x[0].contiguous();
         return from_blob(kept.data_ptr(), kept.sizes(), kept.options()).clone();
       },
       [](P x) { return x[0]; })
      .big(large, 1)
      .no_gradient()
      .uncapturable("data_ptr: nobody sees what is done with it");
  t.row(
       "from_blob.strides", kAll, shapes({{3, 4}, {4, 0}}, -9, 9),
       [](V x) {
         const Tensor kept = x[0].contiguous();
         const int64_t rows = kept.size(0), columns = kept.size(1);
         return from_blob(kept.data_ptr(), {columns, rows}, {1, columns}, kept.options()).clone();
       },
       [](P x) {
         return made({x[0].size(1), x[0].size(0)}, [&](const Index& i) {
           return x[0].at({i[1], i[0]});
         });
       })
      .big(large)
      .sliced({0}, 1)
      .no_gradient()
      .uncapturable("data_ptr: nobody sees what is done with it");
  // A number does not widen what it meets.
  t.row(
       "scalar_to_tensor", kAll, some,
       [](V x) { return add(x[0].logical_not(), scalar_to_tensor(true)); },
       [](P x) { return filled(x[0].sizes, 1); })
      .big(large, 1)
      .gives(boolean)
      .no_gradient();
}

TEST(FactoryRows, ScalarToTensor) {
  EXPECT_EQ(scalar_to_tensor(2).scalar_type(), kLong);
  EXPECT_EQ(scalar_to_tensor(2.5).scalar_type(), kDouble);
  EXPECT_EQ(scalar_to_tensor(true).scalar_type(), kBool);
  expect_close(scalar_to_tensor(2.5), Plain{{}, {2.5}});
  const Tensor half = ones({2}, TensorOptions(kHalf));
  EXPECT_EQ(mul(half, scalar_to_tensor(2.5)).scalar_type(), kHalf);
}

std::vector<Row> rows() {
  Table t;
  add_likes(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
