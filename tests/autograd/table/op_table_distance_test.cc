// Rows of the operation table: norms by their names in linear algebra, distances.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;
using Reduce = std::function<double(const Values&)>;

Reference lines(int64_t dim, Line way, const Reduce& f) {
  return [=](P x) { return along(x[0], dim, way, [f](const Values& v) { return Values{f(v)}; }); };
}
double extremum(const Values& v, bool largest) {
  double found = v[0];
  for (const double x : v)
    if (std::isnan(x) || (!std::isnan(found) && (largest ? x > found : x < found))) found = x;
  return found;
}
double lowest(const Values& v) { return extremum(v, false); }
double highest(const Values& v) { return extremum(v, true); }
double norm_of(const Values& v, double p) {
  double s = 0, top = 0;
  for (const double x : v) {
    top = std::isnan(x) || std::fabs(x) > top ? std::fabs(x) : top;
    s += std::pow(std::fabs(x), p);
  }
  return std::isinf(p) ? top : std::pow(s, 1 / p);
}
Reduce norm_by(double p) {
  return [p](const Values& v) { return norm_of(v, p); };
}

void add_norms(Table& t) {
  const Samples s = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {5}, {}}),
                matrices = shapes({{4, 5}, {2, 3, 4}, {0, 3, 2}});
  const Sample large = {real({700, 131})};
  t.row("linalg_vector_norm", kFloats, s, CALL_OUT(linalg_vector_norm, x[0], 3, -1, true),
        lines(-1, Line::kKeep, norm_by(3)))
      .within(4)
      .big(large, 1);
  t.row("linalg_norm", kFloats, s, CALL_OUT(linalg_norm, x[0], Scalar(1), -1),
        lines(-1, Line::kDrop, norm_by(1)))
      .within(2)
      .big(large, 1);
  // Sums of columns or rows, then an extremum of these.
  const auto summed = [=](int64_t d, const Reduce& then) -> Reference {
    return
        [=](P x) { return lines(-1, Line::kDrop, then)({lines(d, Line::kDrop, norm_by(1))(x)}); };
  };
  const Sample stack = {real({70, 31, 17})};
  t.row("linalg_matrix_norm.columns", kFloats, matrices, CALL_OUT(linalg_matrix_norm, x[0], 1),
        summed(-2, highest))
      .within(2)
      .big(stack, 1);
  t.row("linalg_matrix_norm.rows", kFloats, matrices,
        CALL(linalg_matrix_norm, x[0], -INFINITY, {-2, -1}), summed(-1, lowest))
      .within(2)
      .big(stack, 1);
  const Reference frobenius = [](P x) {
    const int64_t n = x[0].size(-1) * x[0].size(-2);
    return made(Index(x[0].sizes.begin(), x[0].sizes.end() - 2), [&](const Index& i) {
      const auto first = x[0].v.begin() + (i.empty() ? 0 : i[0] * n);
      return norm_of(Values(first, first + n), 2);
    });
  };
  t.row("linalg_matrix_norm", kFloats, matrices, CALL(linalg_matrix_norm, x[0]), frobenius)
      .within(2)
      .big(stack, 1)
      .writes(OUT(linalg_matrix_norm, x[0], "fro"));
  t.row("linalg_norm.matrix", kFloats, matrices,
        CALL_OUT(linalg_norm, x[0], "fro", OptionalIntArrayRef({-2, -1})), frobenius)
      .within(2)
      .big(stack, 1);
  t.row("frobenius_norm", kFloats, matrices, CALL_OUT(frobenius_norm, x[0], {-2, -1}), frobenius)
      .within(2)
      .big(stack, 1);
}

// Row i of a [.., n, m] as the k-th of all, and the norm of the difference of two.
double apart(const Plain& a, int64_t i, const Plain& b, int64_t j, double p) {
  const int64_t m = a.size(-1);
  Values v;
  for (int64_t k = 0; k < m; ++k) v.push_back(a.v[size_t(i * m + k)] - b.v[size_t(j * m + k)]);
  return norm_of(v, p);
}
Reference distances(double p) {
  return [p](P x) {
    const int64_t rows = x[0].size(-2), columns = x[1].size(-2);
    Index sizes(x[0].sizes.begin(), x[0].sizes.end() - 2);
    sizes.insert(sizes.end(), {rows, columns});
    return made(sizes, [&](const Index& i) {
      const int64_t batch = i.size() > 2 ? i[0] : 0, other = x[1].rank() > 2 ? batch : 0;
      return apart(x[0], batch * rows + i[i.size() - 2], x[1], other * columns + i.back(), p);
    });
  };
}

void add_distances(Table& t) {
  const Samples pairs = {{real({4, 5}), real({3, 5})},
                         {real({2, 4, 5}), real({3, 5})},
                         {real({0, 5}), real({3, 5})},
                         {real({4, 0}), real({3, 0})}};
  const Sample large = {real({600, 13}), real({300, 13})};
  t.row("cdist", kFloats, pairs, CALL(cdist, x[0], x[1]), distances(2))
      .within(8)
      .big({real({600, 13}), real({300, 13})})
      .in_one("few rows are compared in another way");
  t.row("cdist.product", kFloats, pairs, CALL(cdist, x[0], x[1], 2, 1), distances(2))
      .within(8)
      .tame("infinities are subtracted")
      .big(large)
      .in_one("how a GPU sums depends on the number of rows");
  t.row("cdist.differences", kFloats, pairs, CALL(cdist, x[0], x[1], 2, 2), distances(2))
      .within(8)
      .big(large, 1);
  t.row("cdist.taxicab", kFloats, pairs, CALL(cdist, x[0], x[1], 1), distances(1))
      .within(8)
      .big(large, 1);
  t.row("cdist.largest", kFloats, pairs, CALL(cdist, x[0], x[1], INFINITY), distances(INFINITY))
      .within(8)
      .big(large, 1);
  t.row("pdist", kFloats, shapes({{4, 5}, {2, 3}, {1, 3}, {0, 3}}), CALL(pdist, x[0], 3),
        [](P x) {
          Plain out{{0}, {}};
          for (int64_t i = 0; i < x[0].size(0); ++i)
            for (int64_t j = i + 1; j < x[0].size(0); ++j)
              out.v.push_back(apart(x[0], i, x[0], j, 3));
          out.sizes[0] = int64_t(out.v.size());
          return out;
        })
      .within(8)
      .big({real({197, 13})})
      .small("there are as many as the square of the rows")
      .in_one("all rows with all");
  const Samples two = {
      {real({4, 5}), real({4, 5})}, {real({4, 5}), real({5})}, {real({0, 5}), real({5})}};
  const auto same_row = [](double p, double eps, bool keep) {
    return [=](P x) {
      const Plain difference = made(common(x[0].sizes, x[1].sizes), [&](const Index& i) {
        return x[0].broadcast(i) - x[1].broadcast(i) + eps;
      });
      return along(difference, -1, keep ? Line::kKeep : Line::kDrop,
                   [p](const Values& v) { return Values{norm_of(v, p)}; });
    };
  };
  t.row("pairwise_distance", kNumbers, two, CALL(pairwise_distance, x[0], x[1], 3, 0.25, true),
        same_row(3, 0.25, true))
      .within(8)
      .gives(floating)
      .only(kFloats | kSigned)  // differences of bytes wrap
      .not_scalar("a number has no last dimension")
      .big({real({700, 131}), real({700, 131})}, 3);
  t.row("dist", kFloats,
        {{real({4, 5}), real({4, 5})},
         {real({4, 5}), real({5})},
         {real({0, 5}), real({5})},
         {real({}), real({})}},
        CALL_OUT(dist, x[0], x[1], 3),
        [](P x) {
          Values v;
          made(common(x[0].sizes, x[1].sizes), [&](const Index& i) {
            v.push_back(x[0].broadcast(i) - x[1].broadcast(i));
            return 0.0;
          });
          return Plain{{}, {norm_of(v, 3)}};
        })
      .within(8)
      .big({real({700, 131}), real({700, 131})})
      .small("the gradient begins with a number's powers");
  t.row("cosine_similarity", kFloats, two, CALL(cosine_similarity, x[0], x[1], -1, 0.5),
        [](P x) {
          const Index sizes = common(x[0].sizes, x[1].sizes);
          const int64_t m = sizes.back();
          return made(Index(sizes.begin(), sizes.end() - 1), [&](Index i) {
            Values a, b;
            i.push_back(0);
            for (i.back() = 0; i.back() < m; ++i.back())
              a.push_back(x[0].broadcast(i)), b.push_back(x[1].broadcast(i));
            double s = 0;
            const double na = norm_of(a, 2), nb = norm_of(b, 2);
            for (size_t k = 0; k < a.size(); ++k)
              s += a[k] / (na < 0.5 ? 0.5 : na) * (b[k] / (nb < 0.5 ? 0.5 : nb));
            return s;
          });
        })
      .within(8)
      .not_scalar("a number has no dimension")
      .big({real({700, 131}), real({700, 131})}, 3);
  t.row("renorm", kFloats, shapes({{4, 5}, {2, 3, 4}, {0, 3}, {3, 0}}),
        CALL_IN_PLACE_OUT(renorm, x[0], 3, -2, 1.5),
        [](P x) {
          const Index& sizes = x[0].sizes;
          return made(sizes, [&](const Index& i) {
            Values slice;
            made(sizes, [&](const Index& j) {
              if (j[j.size() - 2] == i[i.size() - 2]) slice.push_back(x[0].at(j));
              return 0.0;
            });
            const double n = norm_of(slice, 3);
            return n > 1.5 ? x[0].at(i) * (1.5 / (n + 1e-7)) : x[0].at(i);
          });
        })
      .within(8)
      .big({real({700, 131})}, 1);
}

// PyTorch 2.15's numbers and refusals.
TEST(Distances, Edges) {
  const Tensor x = tensor({1., 2., 3., 4.}, kDouble).reshape({2, 2});
  EXPECT_TRUE(equal(cdist(x, x), cdist(x, x, 2, 2)));
  // At distance 0 nothing flows.
  const Tensor a = x.clone().requires_grad_();
  cdist(a, x).sum().backward();
  const double s = std::sqrt(0.5);
  expect_close(a.grad(), Plain{{2, 2}, {-s, -s, s, s}});
  EXPECT_THROW(cdist(x, x, -1), Error);
  EXPECT_THROW(cdist(x, x, 2, 3), Error);
  EXPECT_THROW(cdist(x, x[0]), Error);
  EXPECT_THROW(cdist(x, x.narrow(1, 0, 1)), Error);
  EXPECT_THROW(renorm(x, 0, 0, 1), Error);
  EXPECT_THROW(renorm(x, 2, 0, -1), Error);
  EXPECT_THROW(renorm(x[0], 2, 0, 1), Error);
  EXPECT_THROW(linalg_matrix_norm(x.to(kHalf), 2), Error);
  EXPECT_THROW(linalg_matrix_norm(x, "two"), Error);
  EXPECT_THROW(linalg_matrix_norm(x, 3), Error);
  EXPECT_THROW(linalg_norm(x.unsqueeze(0), Scalar(1)), Error);
  EXPECT_THROW(linalg_norm(x[0], "fro"), Error);
  EXPECT_NEAR(linalg_norm(x).item<double>(), std::sqrt(30.), 1e-12);
  EXPECT_EQ(linalg_norm(x, Scalar(1)).item<double>(), 6);
}

RAMET_OP_TABLE(add_norms, add_distances);

}  // namespace
}  // namespace op_table
}  // namespace ramet
