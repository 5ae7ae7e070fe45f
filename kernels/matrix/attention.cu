#include <cfloat>

#include "kernels/matrix/attention_plain_gpu.h"
#include "kernels/matrix/attention_tensor_backward_gpu.h"
#include "kernels/matrix/attention_tensor_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

bool suits(const AttentionMatrix& m) {
  return !m.data || (reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.batch % 8 == 0 &&
                     m.head % 8 == 0 && m.row % 8 == 0);
}
// The body for these arguments. One for Hopper's own instructions (wgmma, bulk copies) would be
// chosen here, by the card's compute capability; mma.sync runs on all cards since compute_80.
template <class Args> AttentionBody body_of(const Args& a, bool operands_suit) {
  if (a.body != AttentionBody::kAuto) return a.body;
  const bool narrow = a.dtype == ScalarType::Half || a.dtype == ScalarType::BFloat16;
  const float factor = std::fabs(attention_factor(a.scale));
  return narrow && a.columns % 8 == 0 && imax(a.q_rows, a.k_rows) <= kAttentionTensorRows &&
                 a.batch * a.heads * ceil_div(imax(a.q_rows, a.k_rows), 64) <= INT32_MAX &&
                 factor >= FLT_MIN && factor <= FLT_MAX && operands_suit
             ? AttentionBody::kTensorCores
             : AttentionBody::kPlain;
}

// f(columns as a constant), the least that are enough.
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

}  // namespace

void attention_forward(const AttentionArgs& a, Stream where) {
  if (a.batch * a.heads * a.q_rows == 0) return;
  if (body_of(a, suits(a.q) && suits(a.k) && suits(a.v) && suits(a.o)) !=
      AttentionBody::kTensorCores)
    return by_floating_type(a.dtype, [&](auto t) { plain<decltype(t)>(a, where); });
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
