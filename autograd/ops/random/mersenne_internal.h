// LibTorch's distributions, drawn from a Mersenne on the host (Note [LibTorch's numbers] in
// runtime/devices/mersenne.h). Private to autograd/ops.
//
// Each function fills x in the order of its memory. REQUIRES: draws_from_mersenne() holds for x,
// and the arguments are checked. An Error names `op`. Formulas are LibTorch's, with a fused
// multiply-add where its builds for x86-64 have one.
#pragma once
#include <cstdint>

#include "autograd/tensor.h"
#include "runtime/devices/mersenne.h"

namespace ramet {
namespace autograd {
namespace mersenne {

/// Uniform numbers of [from, to). 24 bits, those of float64 53.
void uniform(const char* op, const Tensor& x, double from, double to, const Generator& generator);
/// Normal numbers. A dense tensor of 16 elements or more takes them in blocks of 16.
void normal(const char* op, const Tensor& x, double mean, double std, const Generator& generator);
/// Integers low + k with k below `count` (0: 2^64). A count from 2^28 on takes 64 bits for each.
void integers(const char* op, const Tensor& x, int64_t low, uint64_t count,
              const Generator& generator);
/// Integers from 0 to the largest of x's dtype, as random_() without bounds.
void integers(const char* op, const Tensor& x, const Generator& generator);
/// 1 with probability p, by uniform numbers of 53 bits; else 0.
void bernoulli(const char* op, const Tensor& x, double p, const Generator& generator);
/// 1 with probability p[i]: by 24 bits, where p is float64 by 53. p broadcasts to x.
void bernoulli(const char* op, const Tensor& x, const Tensor& p, const Generator& generator);
void exponential(const char* op, const Tensor& x, double lambda, const Generator& generator);
void log_normal(const char* op, const Tensor& x, double mean, double std,
                const Generator& generator);
void cauchy(const char* op, const Tensor& x, double median, double sigma,
            const Generator& generator);
void geometric(const char* op, const Tensor& x, double p, const Generator& generator);
/// x is a new int64 tensor of one dimension: 0..n-1 in random order.
void permutation(const char* op, const Tensor& x, const Generator& generator);
/// x of x's shape: uniform numbers where `where` is at most 0, in its order of rows; else 1.
void slopes(const char* op, const Tensor& x, const Tensor& where, double low, double high,
            const Generator& generator);

/// x is new and dense, as all below: counts with the expected number mean[i].
void poisson(const char* op, const Tensor& x, const Tensor& mean, const Generator& generator);
/// Successes of count[i] trials with probability prob[i].
void binomial(const char* op, const Tensor& x, const Tensor& count, const Tensor& prob,
              const Generator& generator);
/// x is float64: gamma numbers of shape alpha[i], at least the smallest normal number.
void gamma(const char* op, const Tensor& x, const Tensor& alpha, const Generator& generator);
/// x: int64 of rows times samples. Draws with replacement by the rows of p; their sums are above 0.
void categories(const char* op, const Tensor& x, const Tensor& p, const Generator& generator);

}  // namespace mersenne
}  // namespace autograd
}  // namespace ramet
