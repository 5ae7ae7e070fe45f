// Rows of the operation table: what makes tensors from numbers. A row's function takes options;
// those that follow another tensor (_like) are rows as all others.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>

#include "autograd/graph/captured.h"
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
#define MAKES(...) [=](const TensorOptions& o) { return __VA_ARGS__; }
  std::vector<Factory> t;
  t.push_back({"empty", kAll, kFloat, MAKES(empty({2, 3}, o)), {{2, 3}, {}}});
  t.push_back(
      {"empty_strided", kAll, kFloat, MAKES(empty_strided({2, 3}, {1, 2}, o)), {{2, 3}, {}}});
  t.push_back({"zeros", kAll, kFloat, MAKES(zeros({2, 3}, o)), filled({2, 3}, 0)});
  t.push_back({"zeros.nothing", kAll, kFloat, MAKES(zeros({2, 0}, o)), filled({2, 0}, 0)});
  t.push_back({"ones", kAll, kFloat, MAKES(ones({2, 3}, o)), filled({2, 3}, 1)});
  t.push_back({"ones.scalar", kAll, kFloat, MAKES(ones({}, o)), filled({}, 1)});
  t.push_back({"full", kAll, kLong, MAKES(full({2, 3}, 7, o)), filled({2, 3}, 7)});
  t.push_back({"full.fraction", kAll, kFloat, MAKES(full({2}, 2.5, o)), filled({2}, 2.5)});
  t.push_back({"full.truth", kAll, kBool, MAKES(full({2}, true, o)), filled({2}, 1)});
  t.push_back({"scalar_tensor", kAll, kFloat, MAKES(scalar_tensor(3, o)), filled({}, 3)});
  t.push_back({"arange", kNumbers, kLong, MAKES(arange(5, o)), numbers(5, 0, 1)});
  t.push_back({"arange.step", kNumbers, kLong, MAKES(arange(7, -4, -3, o)), numbers(4, 7, -3)});
  t.push_back({"arange.fraction", kFloats, kFloat, MAKES(arange(0.5, 3, 0.5, o)),
               numbers(5, 0.5, 0.5), true});
  t.push_back({"arange.nothing", kNumbers, kLong, MAKES(arange(2, 2, o)), numbers(0, 0, 0)});
  t.push_back({"linspace", kNumbers, kFloat, MAKES(linspace(1, 9, 5, o)), numbers(5, 1, 2)});
  t.push_back({"linspace.fraction", kFloats, kFloat, MAKES(linspace(-1, 1, 7, o)),
               numbers(7, -1, 1.0 / 3), true});
  t.push_back(
      {"logspace", kNumbers, kFloat, MAKES(logspace(0, 4, 5, 2, o)), Plain{{5}, {1, 2, 4, 8, 16}}});
  t.push_back({"logspace.fraction", kFloats, kFloat, MAKES(logspace(-1, 1, 5, 10, o)),
               Plain{{5}, {0.1, std::sqrt(0.1), 1, std::sqrt(10), 10}}, true});
  t.push_back(
      {"logspace.nothing", kNumbers, kFloat, MAKES(logspace(0, 4, 0, 2, o)), numbers(0, 0, 0)});
  t.push_back({"range", kNumbers, kFloat, MAKES(range(1, 8, 3, o)), numbers(3, 1, 3)});
  t.push_back({"range.end", kNumbers, kFloat, MAKES(range(7, -2, -3, o)), numbers(4, 7, -3)});
  t.push_back(
      {"range.fraction", kFloats, kFloat, MAKES(range(0.5, 3, 0.5, o)), numbers(6, 0.5, 0.5)});
  for (const bool periodic : {false, true}) {
    // Of 9 numbers, or the first 8.
    const auto window = [&](const char* name, auto make, const std::function<double(double)>& f) {
      t.push_back({name, kFloats, kFloat, make, made({periodic ? 8 : 9}, [&](const Index& i) {
                     return f(static_cast<double>(i[0]) / 8);
                   })});
    };
    const int64_t n = periodic ? 8 : 9;
    const auto wave = [](double x) { return std::cos(2 * M_PI * x); };
    const auto bell = [](double x) {  // the series of PyTorch's definition
      const double z = 12 * std::sqrt(1 - (2 * x - 1) * (2 * x - 1));
      return std::cyl_bessel_i(0, z) / std::cyl_bessel_i(0, 12.0);
    };
    const auto name = [&](const char* otherwise, const char* whole) {
      return periodic ? whole : otherwise;
    };
    window(name("bartlett_window", "bartlett_window.periodic"),
           MAKES(bartlett_window(n, periodic, o)),
           [](double x) { return x < 0.5 ? 2 * x : 2 - 2 * x; });
    window(name("blackman_window", "blackman_window.periodic"),
           MAKES(blackman_window(n, periodic, o)),
           [=](double x) { return 0.42 - 0.5 * wave(x) + 0.08 * wave(2 * x); });
    window(name("hamming_window", "hamming_window.periodic"), MAKES(hamming_window(n, periodic, o)),
           [=](double x) { return 0.54 - 0.46 * wave(x); });
    window(name("hamming_window.numbers", "hamming_window.numbers_periodic"),
           MAKES(hamming_window(n, periodic, 0.7, 0.2, o)),
           [=](double x) { return 0.7 - 0.2 * wave(x); });
    window(name("hann_window", "hann_window.periodic"), MAKES(hann_window(n, periodic, o)),
           [=](double x) { return 0.5 - 0.5 * wave(x); });
    window(name("kaiser_window", "kaiser_window.periodic"), MAKES(kaiser_window(n, periodic, o)),
           bell);
  }
  t.push_back({"eye", kAll, kFloat, MAKES(eye(3, 4, o)),
               made({3, 4}, [](const Index& i) { return double(i[0] == i[1]); })});
  t.push_back({"eye.nothing", kAll, kFloat, MAKES(eye(0, o)), filled({0, 0}, 0)});
  t.push_back({"triu_indices", set_of(kInt) | set_of(kLong), kLong, MAKES(triu_indices(3, 4, 1, o)),
               Plain{{2, 6}, {0, 0, 0, 1, 1, 2, 1, 2, 3, 2, 3, 3}}});
  t.push_back({"triu_indices.below", set_of(kInt) | set_of(kLong), kLong,
               MAKES(triu_indices(3, 2, -1, o)), Plain{{2, 5}, {0, 0, 1, 1, 2, 0, 1, 0, 1, 1}}});
  t.push_back({"triu_indices.nothing", set_of(kInt) | set_of(kLong), kLong,
               MAKES(triu_indices(3, 4, INT64_MAX, o)), Plain{{2, 0}, {}}});
  t.push_back({"tril_indices", set_of(kInt) | set_of(kLong), kLong,
               MAKES(tril_indices(3, 4, -1, o)), Plain{{2, 3}, {1, 2, 2, 0, 0, 1}}});
  t.push_back({"tril_indices.above", set_of(kInt) | set_of(kLong), kLong,
               MAKES(tril_indices(3, 2, 0, o)), Plain{{2, 5}, {0, 1, 1, 2, 2, 0, 0, 1, 0, 1}}});
  return t;
}

// Every element at a place that the mask of triu (tril) keeps, for all small matrices and
// diagonals.
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

// Sizes, defaults and numbers of PyTorch's.
TEST(FactoryRows, WindowsAtTheEdges) {
  expect_close(hann_window(5), plain_of(hann_window(5, true)));
  expect_close(kaiser_window(6), plain_of(kaiser_window(6, true, 12)));
  expect_close(hamming_window(6, true, 0.3), plain_of(hamming_window(6, true, 0.3, 0.46)));
  const auto check = [](const std::function<Tensor(int64_t)>& make) {
    EXPECT_EQ(make(0).sizes().vec(), Index{0});
    expect_close(make(1), filled({1}, 1));
    EXPECT_THROW(make(-1), Error);
  };
  check([](int64_t n) { return bartlett_window(n); });
  check([](int64_t n) { return blackman_window(n, false); });
  check([](int64_t n) { return hamming_window(n, true, 0.3); });
  check([](int64_t n) { return hann_window(n, false); });
  check([](int64_t n) { return kaiser_window(n, false, 3); });
  // Of any width: e^-|beta| I0(beta) for beta far beyond what I0 itself has.
  expect_close(kaiser_window(5, true, -3), Plain{{5}, {0.2049, 0.6247, 0.9522, 0.9522, 0.6247}},
               100);
  for (const double beta : {0.0, 1e-3, 1.0, 40.0, 300.0, 650.0}) {
    const double side = beta * std::sqrt(0.75);
    const double want = std::cyl_bessel_i(0, side) / std::cyl_bessel_i(0, beta);
    const double got = kaiser_window(5, false, beta, kDouble)[1].item<double>();
    EXPECT_NEAR(got / want, 1, 1e-12) << beta;
  }
  // Just below and just above the beginning of the asymptotic series.
  for (const double beta : {9999.9, 10000.1}) {
    // Of 10,001 numbers one near the middle.
    const double side = 2 * 4500 / 10000.0 - 1, a = beta * std::sqrt(1 - side * side);
    const auto scaled = [](double x) {  // e^-x I0(x) by its first terms
      return (1 + 1 / (8 * x) + 9 / (128 * x * x)) / std::sqrt(2 * M_PI * x);
    };
    EXPECT_NEAR(std::log(kaiser_window(10001, false, beta, kDouble)[4500].item<double>()),
                std::log(scaled(a) / scaled(beta)) + a - beta, 1e-9);
  }
}

TEST(FactoryRows, IntoWhatIsGiven) {
  Tensor out = empty({0}, kDouble);
  expect_close(arange_out(out, 3), Plain{{3}, {0, 1, 2}});
  expect_close(arange_out(out, 1, 2, 0.5), Plain{{2}, {1, 1.5}});
  expect_close(linspace_out(out, 0, 1, 3), Plain{{3}, {0, 0.5, 1}});
  expect_close(linspace_out(out, tensor(0), tensor(1), 2), Plain{{2}, {0, 1}});
  expect_close(linspace_out(out, tensor(0), 1, 2), Plain{{2}, {0, 1}});
  expect_close(linspace_out(out, 0, tensor(1), 2), Plain{{2}, {0, 1}});
  expect_close(eye_out(out, 2), Plain{{2, 2}, {1, 0, 0, 1}});
  expect_close(eye_out(out, 1, 2), Plain{{1, 2}, {1, 0}});
  EXPECT_EQ(out.scalar_type(), kDouble);
  EXPECT_EQ(empty_out(out, {3, 0}).sizes(), IntArrayRef({3, 0}));
  EXPECT_THROW(empty_out(out, {1, 2, 3, 4}, MemoryFormat::Contiguous), Error);
  // A column of another tensor; whole numbers.
  Tensor x = zeros({3, 2}, kLong), column = x.select(1, 1);
  arange_out(column, 1, 4, 1);
  expect_close(x, Plain{{3, 2}, {0, 1, 0, 2, 0, 3}});
  Tensor none, leaf = zeros({2}).requires_grad_();
  for (const auto& f : std::vector<std::function<void(Tensor&)>>{
           [](Tensor& o) { arange_out(o, 2); }, [](Tensor& o) { eye_out(o, 2); },
           [](Tensor& o) { linspace_out(o, 0, 1, 2); }, [](Tensor& o) { empty_out(o, {2}); }}) {
    EXPECT_THROW(f(none), Error);
    EXPECT_THROW(f(leaf), Error);
  }
  EXPECT_THROW(eye_out(out, -1), Error);
}

TEST(FactoryRows, SequencesAtTheEdges) {
  expect_close(logspace(tensor(0), tensor(3), 4), Plain{{4}, {1, 10, 100, 1000}});
  expect_close(logspace(tensor(0), 3, 4), Plain{{4}, {1, 10, 100, 1000}});
  expect_close(logspace(0, tensor(3), 4), Plain{{4}, {1, 10, 100, 1000}});
  expect_close(logspace(0, 3, 4, -2), Plain{{4}, {1, -2, 4, -8}});
  expect_close(logspace(0, 3, 4, 0), Plain{{4}, {1, 0, 0, 0}});
  expect_close(logspace(1.5, 1.5, 1, 4), Plain{{1}, {8}});
  EXPECT_THROW(logspace(0, 3, -1), Error);
  EXPECT_THROW(logspace(tensor({1.0, 2.0}), 3, 4), Error);
  Tensor out = empty({0}, kDouble);
  expect_close(logspace_out(out, 0, 2, 3), Plain{{3}, {1, 10, 100}});
  expect_close(logspace_out(out, tensor(0), tensor(2), 2), Plain{{2}, {1, 100}});
  expect_close(logspace_out(out, 0, tensor(2), 2, 2), Plain{{2}, {1, 4}});
  expect_close(logspace_out(out, tensor(0), 2, 2, 2), Plain{{2}, {1, 4}});
  expect_close(range_out(out, 1, 3), Plain{{3}, {1, 2, 3}});
  expect_close(range_out(out, 3, 1, -2), Plain{{2}, {3, 1}});
  EXPECT_EQ(out.scalar_type(), kDouble);
  expect_close(range(1, 1, 1), Plain{{1}, {1}});
  expect_close(range(0.5, 4.5, kLong), Plain{{5}, {0, 1, 2, 3, 4}});
  expect_close(range(INT64_MAX - 1, INT64_MAX, 1, kLong).sub(INT64_MAX - 1), Plain{{2}, {0, 1}});
  EXPECT_THROW(range(1, 4, 0), Error);
  EXPECT_THROW(range(1, 4, 0.5, kLong), Error);
  EXPECT_THROW(range(4, 1, 1), Error);
  EXPECT_THROW(range(1, NAN, 1), Error);
  EXPECT_THROW(range(INT64_MIN, INT64_MAX, 1, kLong), Error);
  EXPECT_THROW(range(0, 1e300, 1), Error);
}

void add_powers(Table& t) {
  const auto powers = [](int64_t n, bool increasing) {
    return [=](P x) {
      return made({x[0].size(0), n}, [&](const Index& i) {
        return std::pow(x[0].v[static_cast<size_t>(i[0])],
                        static_cast<double>(increasing ? i[1] : n - 1 - i[1]));
      });
    };
  };
  const Samples some = shapes({{3}, {0}, {1}}, -2, 2);
  t.row("vander", kAll, some, CALL(vander, x[0], 4), powers(4, false))
      .gives(widened)
      .small("exponents are few, as are the threads that subtract 1 from them")
      .within(4)
      .big({real({9000})}, 1);
  t.row("vander.increasing", kAll, some, CALL(vander, x[0], 3, true), powers(3, true))
      .gives(widened)
      .small("exponents are few, as are the threads that subtract 1 from them")
      .within(4)
      .big({real({9000})}, 1);
  t.row("vander.square", kAll, shapes({{3}, {0}}), CALL(vander, x[0]),
        [powers](P x) { return powers(x[0].size(0), false)(x); })
      .gives(widened)
      .within(8)
      .tame("an infinite power of a large number")
      .in_one("as many powers as elements")
      .small("as many powers as elements")
      .big({real({200}, -1, 1)});
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
    if (!(with_unsigned(row.dtypes) & set_of(dtype))) {
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
TEST_P(FactoryTable, Captured) {
  const Factory& row = GetParam();
  Captured step([&] { return row.make({}); });
  for (int call = 0; call < 2; ++call) {
    const Tensor got = step(), want = row.make({});
    EXPECT_EQ(got.sizes(), want.sizes());
    if (!row.want.v.empty()) { EXPECT_TRUE(bits(got) == bits(want)); }
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
  const auto row = [&](const char* name, double value, Calls call) -> Row& {
    return t
        .row(name, kAll, some, std::move(call), [value](P x) { return filled(x[0].sizes, value); })
        .no_gradient()
        .big(large, 1);
  };
  row("empty_like", 1, EXPRESSION(empty_like(x[0]).fill_(1)));
  row("zeros_like", 0, CALL(zeros_like, x[0])).changes(EXPRESSION(x[0].zero_()));
  row("ones_like", 1, CALL(ones_like, x[0]));
  row("full_like", 3, CALL(full_like, x[0], 3)).changes(EXPRESSION(x[0].fill_(3)));
  row("full_like.tensor", 3, CALL(full_like, x[0], 3))
      .changes(EXPRESSION(x[0].fill_(scalar_tensor(3))));
  // The same memory, for any strides of the tensor it belongs to.
  t.row(
       "from_blob", kAll, some,
       [](V x) {
         const Tensor kept = x[0].contiguous();
         return from_blob(kept.data_ptr(), kept.sizes(), kept.options()).clone();
       },
       [](P x) { return x[0]; })
      .big(large, 1)
      .no_gradient()
      .uncapturable("data_ptr: what is done with it is unknown")
      .refused_as("data_ptr");
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
      .uncapturable("data_ptr: what is done with it is unknown")
      .refused_as("data_ptr");
  // From a file that has the bytes of a tensor. The file's name is gone before the tensor is.
  t.row(
       "from_file", kAll, some,
       [](V x) {
         const Tensor kept = x[0].to(Device(kCPU, 0)).contiguous();
         const int file = ::memfd_create("from_file", MFD_CLOEXEC);
         const auto bytes = static_cast<ssize_t>(kept.nbytes());
         const bool written = ::write(file, kept.data_ptr(), kept.nbytes()) == bytes;
         RAMET_CHECK(written, "op_table", "a file without a name cannot be written");
         const Tensor y = from_file("/proc/self/fd/" + std::to_string(file), false, kept.numel(),
                                    kept.options().requires_grad(false));
         ::close(file);
         return y.view(kept.sizes()).to(x[0].device());
       },
       [](P x) { return x[0]; })
      .big(large, 1)
      .alone("memory of a file: nothing is computed")
      .by_host("a file is in memory of a CPU")
      .no_gradient()
      .uncapturable("data_ptr: what is done with it is unknown")
      .refused_as("data_ptr");
  // A number does not widen the other operand.
  t.row("scalar_to_tensor", kAll, some, CALL(add, x[0].logical_not(), scalar_to_tensor(true)),
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

RAMET_OP_TABLE(add_likes, add_powers);

}  // namespace
}  // namespace op_table
}  // namespace ramet
