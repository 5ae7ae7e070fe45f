// Draws that take as many random numbers as they need, each as LibTorch does it: Poisson's, the
// binomial and the gamma distribution, indices by probability.
//
// Large means use transformed rejection (W. Hoermann 1993: PTRS for Poisson's, BTRS for the
// binomial distribution). The gamma distribution uses the rejection method with a cube (G.
// Marsaglia, W. W. Tsang 2000).
#include <cmath>
#include <utility>

#include "autograd/ops/random/mersenne_fill_internal.h"

namespace ramet {
namespace autograd {
namespace mersenne {

namespace {

double poisson_of(double mean, Mersenne& engine) {
  if (!(mean > 0) || !(mean < 1e300)) return mean;
  if (mean < 10) {
    const double least = std::exp(-mean);
    double product = 1, k = 0;
    while ((product *= engine.uniform()) > least) ++k;
    return k;
  }
  const double root = std::sqrt(mean), log_mean = std::log(mean), b = 0.931 + 2.53 * root,
               a = -0.059 + 0.02483 * b, scale = 1.1239 + 1.1328 / (b - 3.4),
               quick = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = engine.uniform() - 0.5, v = engine.uniform(), side = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / side + b) * u + mean + 0.43);
    if (side >= 0.07 && v <= quick) return k;
    if (k < 0 || (side < 0.013 && v > side)) continue;
    if (std::log(v) + std::log(scale) - std::log(a / (side * side) + b) <=
        -mean + k * log_mean - std::lgamma(k + 1))
      return k;
  }
}

// log(k!) without its main terms.
double stirling_rest(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k < 10) return kFirst[static_cast<size_t>(k)];
  const double z = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / z) / z) / (k + 1);
}

// Numbers of failures between successes, for a mean below 10. T: the tensors' type.
template <class T> T few_of(T n, T p, Mersenne& engine) {
  const double log_failure = std::log1p(-p);
  double trials = 0;
  for (T k = 0;; ++k) {
    trials += std::ceil(std::log(engine.uniform()) / log_failure);
    if (trials > static_cast<double>(n)) return k;
  }
}
template <class T> T many_of(T n, T p, Mersenne& engine) {
  const double root = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * root,
               a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, quick = 0.92 - 4.2 / b,
               odds = p / (1 - p), scale = (2.83 + 5.1 / b) * root, m = std::floor((n + 1) * p);
  for (;;) {
    const double u = engine.uniform() - 0.5, v = engine.uniform(), side = 0.5 - std::fabs(u);
    const T k = static_cast<T>(std::floor((2 * a / side + b) * u + c));
    if (k < 0 || k > n) continue;
    if (side >= 0.07 && v <= quick) return k;
    const double most = (m + 0.5) * std::log((m + 1) / (odds * (n - m + 1))) +
                        (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                        (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(m) +
                        stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (std::log(v * scale / (a / (side * side) + b)) <= most) return k;
  }
}
template <class T> T binomial_of(T count, T p, Mersenne& engine) {
  if (std::isnan(count) || std::isnan(p)) return count + p;
  const T n = std::floor(count);
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1 || !(n < static_cast<T>(1e30))) return n;
  const T rarer = p <= T(0.5) ? p : static_cast<T>(1.0 - p);
  const T k = n * rarer >= T(10) ? many_of(n, rarer, engine) : few_of(n, rarer, engine);
  return p <= T(0.5) ? k : n - k;
}

double gamma_of(double alpha, Mersenne& engine) {
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale = std::pow(1 - engine.uniform(), 1.0 / alpha);
    alpha += 1;
  }
  const double d = alpha - static_cast<double>(1.0f / 3.0f), c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    double x, y;
    do {
      x = engine.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - engine.uniform(), square = x * x;
    if (u < 1 - static_cast<double>(0.0331f) * square * square) return scale * d * v;
    if (std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// T: the type of the sums.
template <class T>
void pick(int64_t* chosen, const T* p, int64_t rows, int64_t n, int64_t samples, Mersenne& engine) {
  std::vector<T> sums(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; ++r) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(i)] = sum += p[r * n + i];
    for (T& s : sums) s /= sum;
    sums.back() = 1;
    for (int64_t i = 0; i < samples; ++i) {
      const double u = engine.uniform();
      const auto at = std::lower_bound(sums.begin(), sums.end(), u,
                                       [](T s, double v) { return static_cast<double>(s) < v; });
      *chosen++ = at - sums.begin();
    }
  }
}

}  // namespace

void poisson(const char* op, const Tensor& x, const Tensor& mean, const Generator& generator) {
  const std::vector<double> means = loaded(mean);
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t i) {
    return poisson_of(means[static_cast<size_t>(i)], engine);
  });
}

void binomial(const char* op, const Tensor& x, const Tensor& count, const Tensor& prob,
              const Generator& generator) {
  const std::vector<double> counts = loaded(count), p = loaded(prob);
  const bool wide = x.scalar_type() == kDouble;
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t i) -> double {
    const double n = counts[static_cast<size_t>(i)], q = p[static_cast<size_t>(i)];
    if (wide) return binomial_of(n, q, engine);
    return binomial_of(static_cast<float>(n), static_cast<float>(q), engine);
  });
}

void gamma(const char* op, const Tensor& x, const Tensor& alpha, const Generator& generator) {
  const std::vector<double> shapes = loaded(alpha);
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t i) {
    return std::max(std::numeric_limits<double>::min(),
                    gamma_of(shapes[static_cast<size_t>(i)], engine));
  });
}

void categories(const char* op, const Tensor& x, const Tensor& p, const Generator& generator) {
  const bool wide = p.scalar_type() == kDouble;
  const Tensor dense = p.detach().to(wide ? kDouble : kFloat).contiguous();
  const int64_t rows = x.size(0), samples = x.size(1), n = dense.size(-1);
  auto* const chosen = static_cast<int64_t*>(x.ptr());
  const MersenneDraw engine(op, generator);
  if (wide) pick(chosen, static_cast<const double*>(dense.ptr()), rows, n, samples, *engine);
  else pick(chosen, static_cast<const float*>(dense.ptr()), rows, n, samples, *engine);
}

}  // namespace mersenne
}  // namespace autograd
}  // namespace ramet
