#include <cfloat>
#include <cstdlib>
#include <cstring>

#include "kernels/matrix/attention_plain_gpu.h"
#include "kernels/matrix/attention_tensor_backward_gpu.h"
#include "kernels/matrix/attention_tensor_gpu.h"
#include "kernels/matrix/attention_wgmma_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

bool suits(const AttentionMatrix& m) {
  return !m.data || (reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.batch % 8 == 0 &&
                     m.head % 8 == 0 && m.row % 8 == 0);
}
// Does the environment ask for the kernel with Hopper's own instructions?
bool wgmma_wanted() {
  static const bool wanted = [] {
    const char* text = std::getenv("RAMET_CUDA_ATTENTION");
    const char* value = text && *text ? text : "mma";
    const bool wgmma = std::strcmp(value, "wgmma") == 0;
    RAMET_CHECK(wgmma || std::strcmp(value, "mma") == 0, "RAMET_CUDA_ATTENTION", "got \"", value,
                "\", expected mma or wgmma");
    return wgmma;
  }();
  return wanted;
}

// The kernel for these arguments, among those that the backward pass has, too.
template <class Args> AttentionBody body_of(const Args& a, bool operands_suit) {
  if (a.body == AttentionBody::kWgmma) return AttentionBody::kTensorCores;
  if (a.body != AttentionBody::kAuto) return a.body;
  const bool narrow = a.dtype == ScalarType::Half || a.dtype == ScalarType::BFloat16;
  const float factor = std::fabs(attention_factor(a.scale));
  return narrow && a.columns % 8 == 0 && imax(a.q_rows, a.k_rows) <= kAttentionTensorRows &&
                 a.batch * a.heads * ceil_div(imax(a.q_rows, a.k_rows), 64) <= INT32_MAX &&
                 factor >= FLT_MIN && factor <= FLT_MAX && operands_suit
             ? AttentionBody::kTensorCores
             : AttentionBody::kPlain;
}
// For the forward pass. mma.sync runs on all GPUs since compute_80, wgmma on one.
AttentionBody forward_body_of(const AttentionArgs& a, bool operands_suit, Stream where) {
  const AttentionBody body = body_of(a, operands_suit);
  const bool wgmma = a.body == AttentionBody::kWgmma ||
                     (a.body == AttentionBody::kAuto && body == AttentionBody::kTensorCores &&
                      wgmma_wanted() && wgmma_takes(a) && wgmma_runs_on(where));
  return wgmma ? AttentionBody::kWgmma : body;
}

// f(columns as a constant), with the smallest number that is enough.
template <class F> void by_columns(int64_t columns, const F& f) {
  if (columns <= 32) return f(std::integral_constant<int, 32>());
  if (columns <= 64) return f(std::integral_constant<int, 64>());
  f(std::integral_constant<int, 128>());
}

// f(format of the tensor cores, columns as a constant).
template <class Args, class F> void by_cores(const Args& a, const F& f) {
  by_columns(a.columns, [&](auto n) {
    a.dtype == ScalarType::Half ? f(HalfCores(), n) : f(BfloatCores(), n);
  });
}

template <class T> void plain(const AttentionArgs& a, Stream where) {
  by_columns(a.columns, [&](auto n) { attention_plain<T, decltype(n)::value>(a, where); });
}
template <class T> void plain_backward(const AttentionBackwardArgs& a, Stream where) {
  T* dots = static_cast<T*>(a.workspace);
  start_for("attention_backward", where, a.batch * a.heads * a.q_rows * kParts,
            attention_dots_kernel<T>, a, dots);
  by_columns(a.columns,
             [&](auto n) { attention_plain_backward<T, decltype(n)::value>(a, dots, where); });
}
void wgmma(const AttentionArgs& a, Stream where) {
  const auto run = [&](auto cores) {
    a.columns == 64 ? attention_wgmma<decltype(cores), 64>(a, where)
                    : attention_wgmma<decltype(cores), 128>(a, where);
  };
  a.dtype == ScalarType::Half ? run(HalfCores()) : run(BfloatCores());
}

}  // namespace

void attention_forward(const AttentionArgs& a, Stream where) {
  if (a.batch * a.heads * a.q_rows == 0) return;
  const bool suit = suits(a.q) && suits(a.k) && suits(a.v) && suits(a.o);
  const AttentionBody body = forward_body_of(a, suit, where);
  if (body == AttentionBody::kPlain)
    return by_floating_type(a.dtype, [&](auto t) { plain<decltype(t)>(a, where); });
  if (body == AttentionBody::kWgmma) return wgmma(a, where);
  by_cores(a, [&](auto cores, auto n) {
    attention_tensor<decltype(cores), decltype(n)::value>(a, where);
  });
}
void attention_backward(const AttentionBackwardArgs& a, Stream where) {
  if (a.batch * a.heads == 0) return;
  if (body_of(a, suits(a.q) && suits(a.k) && suits(a.v) && suits(a.o) && suits(a.grad) &&
                     suits(a.dq) && suits(a.dk) && suits(a.dv)) != AttentionBody::kTensorCores)
    return by_floating_type(a.dtype, [&](auto t) { plain_backward<decltype(t)>(a, where); });
  by_cores(a, [&](auto cores, auto n) {
    attention_tensor_backward<decltype(cores), decltype(n)::value>(a, where);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
