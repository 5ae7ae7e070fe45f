// One draw of counts.h. Small means use the gaps between events, large ones transformed rejection.
// (W. Hoermann: "The transformed rejection method for generating Poisson random variables", 1993,
// PTRS; "The generation of binomial random variates", 1993, BTRS.) The gamma distribution uses the
// rejection method with a cube. (G. Marsaglia, W. W. Tsang: A simple method for generating gamma
// variables, 2000.) In plain arithmetic on doubles, so that every variant and GPUs have the same
// bits. REQUIRES: no contraction of a * b + c.
#pragma once
#include "kernels/random/counts.h"
#include "kernels/random/philox.h"

namespace ramet::kernels::RAMET_VARIANT {

/// The random numbers of one element.
struct ElementDraws {
  RandomKey key;
  uint64_t element, round = 0;
  double kept = 0;
  bool has_kept = false;

  /// (0, 1].
  RAMET_INLINE double next() {
    if (has_kept) return has_kept = false, kept;
    const Words x = philox_block(element + (round++ << 56), key);
    kept = unit53(x.w[2], x.w[3]) + 0x1p-53;
    has_kept = true;
    return unit53(x.w[0], x.w[1]) + 0x1p-53;
  }
  /// More draws than any element needs: further ones would belong to another element.
  RAMET_INLINE bool used_up() const { return round > 255; }
};

/// log(1 + x) for x > -1 (W. Kahan).
RAMET_INLINE double log1p_plain(double x) {
  const double u = 1 + x;
  return u == 1 ? x : log_plain(u) * x / (u - 1);
}
/// log(k!) for k below 20, for which the factorial is exact.
RAMET_INLINE double log_small_factorial(double k) {
  double f = 1;
  for (double j = 2; j <= k; ++j) f *= j;
  return log_plain(f);
}
constexpr double kTwoPi = 6.283185307179586476925;

/// log of the probability of k events with an expected number `mean` >= 10. Stirling's series, and
/// the mean's distance from k without cancellation. (C. Loader, Fast and accurate computation of
/// binomial probabilities, 2000.)
RAMET_INLINE double log_poisson(double k, double mean) {
  if (k < 16) return k * log_plain(mean) - mean - log_small_factorial(k);
  const double x = (mean - k) / k;
  double distance;  // x - log(1 + x)
  if (x > -0.1 && x < 0.1) {
    double p = 0;
    for (int j = 18; j >= 2; --j) p = 1.0 / j - x * p;
    distance = x * x * p;
  } else {
    distance = x - log_plain(mean / k);
  }
  const double z = 1 / (k * k);
  return -k * distance - 0.5 * log_plain(kTwoPi * k) -
         (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260))) / k;
}

RAMET_INLINE double poisson(double mean, ElementDraws& draws) {
  if (!(mean > 0) || !(mean < 1e300)) return mean;
  if (mean < 10) {
    double time = 0;
    for (double k = 0;; ++k) {
      time -= log_plain(draws.next());
      if (time > mean || draws.used_up()) return k;
    }
  }
  const double root = RAMET_LIBM(sqrt)(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b,
               scale = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draws.next() - 0.5, v = draws.next(), side = 0.5 - (u < 0 ? -u : u);
    if (!(side > 0)) continue;
    const double k = RAMET_LIBM(floor)((2 * a / side + b) * u + mean + 0.43);
    if ((side >= 0.07 && v <= quick) || draws.used_up()) return k < 0 ? 0 : k;
    if (k < 0 || (side < 0.013 && v > side)) continue;
    if (log_plain(v * scale / (a / (side * side) + b)) <= log_poisson(k, mean)) return k;
  }
}

/// log(k!) - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2).
RAMET_INLINE double stirling_rest(double k) {
  const double n = k + 1;
  if (k < 10)
    return log_small_factorial(k) - ((k + 0.5) * log_plain(n) - n + 0.5 * log_plain(kTwoPi));
  const double z = 1 / (n * n);
  return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260))) / n;
}

/// For whole n > 0 and p in (0, 1/2].
RAMET_INLINE double binomial_half(double n, double p, ElementDraws& draws) {
  if (n * p < 10) {
    const double per_gap = 1 / log1p_plain(-p);
    double trial = 0;
    for (double k = 0;; ++k) {
      const double gap = RAMET_LIBM(ceil)(log_plain(draws.next()) * per_gap);
      trial += gap < 1 ? 1 : gap;
      if (trial > n || draws.used_up()) return k;
    }
  }
  const double q = 1 - p, root = RAMET_LIBM(sqrt)(n * p * q), b = 1.15 + 2.53 * root,
               a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, quick = 0.92 - 4.2 / b,
               scale = (2.83 + 5.1 / b) * root, m = RAMET_LIBM(floor)((n + 1) * p),
               likeliest = log_plain((m + 1) * q / (p * (n - m + 1)));
  for (;;) {
    const double u = draws.next() - 0.5, v = draws.next(), side = 0.5 - (u < 0 ? -u : u);
    if (!(side > 0)) continue;
    const double k = RAMET_LIBM(floor)((2 * a / side + b) * u + c);
    if ((side >= 0.07 && v <= quick) || draws.used_up()) return k < 0 ? 0 : k > n ? n : k;
    if (k < 0 || k > n) continue;
    // The log of k's probability minus that of the likeliest number, as a function of their
    // distance. So no number as large as n is rounded.
    const double below = m - k;
    const double most = below * likeliest + (k + 0.5) * log1p_plain(below / (k + 1)) -
                        (n - k + 0.5) * log1p_plain(below / (n - m + 1)) + stirling_rest(m) +
                        stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (log_plain(v * scale / (a / (side * side) + b)) <= most) return k;
  }
}
RAMET_INLINE double binomial(double trials, double p, ElementDraws& draws) {
  if (trials != trials || p != p) return trials + p;
  const double n = RAMET_LIBM(floor)(trials);
  if (n < 1 || p <= 0) return 0;
  if (p >= 1 || !(n < 1e300)) return n;
  return p <= 0.5 ? binomial_half(n, p, draws) : n - binomial_half(n, 1 - p, draws);
}

/// For a shape below 1: a draw of shape + 1 times u^(1 / shape).
RAMET_INLINE double log_gamma(double shape, ElementDraws& draws) {
  if (shape != shape) return shape;
  double small = 0;
  if (shape < 1) {
    small = log_plain(draws.next()) / shape;
    if (!(small > -0x1p1023)) small = -0x1p1023;  // for shapes near 0: differences are not NaN
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / RAMET_LIBM(sqrt)(9 * d);
  for (;;) {
    const double u1 = draws.next(), u2 = draws.next(), u = draws.next();
    double x, unused;
    box_muller(u1, u2, &x, &unused);
    const double root = 1 + c * x, v = root * root * root;
    if (!(root > 0)) {
      if (draws.used_up()) return log_plain(d) + small;
      continue;
    }
    const double log_v = log_plain(v);
    if (log_plain(u) < 0.5 * x * x + d * (1 - v + log_v) || draws.used_up())
      return log_plain(d) + log_v + small;
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
