#include "kernels/rows/cross_entropy.h"

#include "kernels/rows/cross_entropy_pixels.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// The pieces of the workspace.
template <class T> struct Plan {
  Partial* partials;
  const T* weight;  // null: ones
  char* buffers;
  double weight_sum;  // over the classes

  // t: of w.
  Plan(void* workspace, const void* w, ScalarType t, int64_t rows, int64_t cols) {
    char* p = static_cast<char*>(workspace);
    partials = reinterpret_cast<Partial*>(p);
    p += ceil_div(rows, kLossGroup) * static_cast<int64_t>(sizeof(Partial));
    weight = static_cast<const T*>(w);
    if (w && t != ComputeTag<T>::value) {
      load_chunk(w, t, 1, cols, reinterpret_cast<T*>(p));
      weight = reinterpret_cast<const T*>(p);
    }
    buffers = p + row_stride(cols) * 8;
    weight_sum = static_cast<double>(cols);
    if (!w) return;
    weight_sum = 0;
    for (int64_t c = 0; c < cols; ++c) weight_sum += static_cast<double>(weight[c]);
  }
};

template <class T> RAMET_INLINE Lanes<T> class_weight(const T* w, int64_t i) {
  return w ? lload(w + i) : lset<T>(1);
}
template <class T> RAMET_INLINE Lanes<T> class_weight(const T* w, int64_t i, int64_t left) {
  return w ? lload_n<T>(w + i, left, T(0)) : lset<T>(1);
}

// max and log sum exp(x - max) of a row.
template <class T> void statistics_of(const T* x, int64_t n, T* out) {
  constexpr int last = kAccumulators<T> - 1;
  Accumulators<T> m, s;
  lfill<T>(m, kLowest<T>), lfill<T>(s, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { m[u] = lmax(m[u], lload(x + i)); },
      [&](int64_t i, int64_t left) {
        m[last] = lmax(m[last], lload_n<T>(x + i, left, kLowest<T>));
      });
  const T top = lfold_max<T>(m);
  const Lanes<T> M = lset(top);
  sweep<T>(
      n, [&](int64_t i, int u) { s[u] = s[u] + lexp(lload(x + i) - M); },
      [&](int64_t i, int64_t left) {
        s[last] = s[last] + lfirst(lexp(lload_n<T>(x + i, left, top) - M), left);
      });
  out[0] = top, out[1] = log_of(lfold_add<T>(s));
}

// sum_c w[c] (x[c] - m)
template <class T> T weighted_sum(const T* x, const T* w, int64_t n, T m) {
  constexpr int last = kAccumulators<T> - 1;
  const Lanes<T> M = lset(m);
  Accumulators<T> s;
  lfill<T>(s, 0);
  sweep<T>(
      n, [&](int64_t i, int u) { s[u] = lfma(lload(x + i) - M, class_weight(w, i), s[u]); },
      [&](int64_t i, int64_t left) {
        s[last] = lfma(lload_n<T>(x + i, left, m) - M, class_weight(w, i, left), s[last]);
      });
  return lfold_add<T>(s);
}

template <class T> void forward(const CrossEntropyArgs& a) {
  const Plan<T> plan(a.workspace, a.weight, a.dtype, a.rows, a.cols);
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  const int64_t groups = ceil_div(a.rows, kLossGroup);
  // nll_loss without smoothing reads one element of a row.
  const bool whole_rows = !a.log_probs || a.smoothing != 0;
  run_tasks(
      groups, a.rows * (whole_rows ? a.cols : 16) * bytes_of(a.dtype),
      [&](int64_t group, int slot) {
        const int64_t first = group * kLossGroup, end = imin(a.rows, first + kLossGroup);
        if (a.inner > 1) {
          plan.partials[group] =
              forward_pixels(a, plan.weight, plan.weight_sum, whole_rows, first, end);
          return;
        }
        char* buffers = slot_buffers(plan.buffers, a.cols, 2, slot);
        Partial sum{0, 0};
        for (int64_t r = first; r < end; ++r) {
          const int64_t t = a.target[r];
          const bool counts = t != a.ignore_index;
          double loss = 0;
          if (whole_rows) {
            const T* x = row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
            T own[2] = {0, 0}, *st = a.log_probs ? own : static_cast<T*>(a.statistics) + 2 * r;
            if (!a.log_probs) statistics_of(x, a.cols, st);
            if (counts) {
              const double w = plan.weight ? static_cast<double>(plan.weight[t]) : 1.0;
              loss = sharp * w *
                     (static_cast<double>(st[1]) -
                      (static_cast<double>(x[t]) - static_cast<double>(st[0])));
              if (a.smoothing != 0)
                loss += smooth * (static_cast<double>(st[1]) * plan.weight_sum -
                                  static_cast<double>(weighted_sum(x, plan.weight, a.cols, st[0])));
              sum.weight += w;
            }
          } else if (counts) {
            const double w = plan.weight ? static_cast<double>(plan.weight[t]) : 1.0;
            loss = -w * static_cast<double>(load_one<T>(at(a.x, a.dtype, r * a.cols + t), a.dtype));
            sum.weight += w;
          }
          sum.loss += loss;
          if (a.reduction == LossReduction::kNone)
            store_one(at(a.loss, a.dtype, r), a.dtype, static_cast<T>(loss));
        }
        plan.partials[group] = sum;
      });
  Partial total{0, 0};
  for (int64_t g = 0; g < groups; ++g)
    total.loss += plan.partials[g].loss, total.weight += plan.partials[g].weight;
  *a.total_weight = total.weight;
  if (a.reduction == LossReduction::kNone) return;
  store_one(
      a.loss, a.dtype,
      static_cast<T>(a.reduction == LossReduction::kMean ? total.loss / total.weight : total.loss));
}

template <class T>
void backward_row(const T* x, const T* w, const T* st, T* dx, int64_t n, T scale, T each) {
  const Lanes<T> M = x ? lset(st[0]) : lset<T>(0), L = x ? lset(st[1]) : lset<T>(0),
                 S = lset(scale), E = lset(each);
  const bool plain = each == T(0);
  const auto value = [&](const Lanes<T>& p, const Lanes<T>& wc) {
    return plain ? p * S : lfma(wc, E, p * S);
  };
  sweep<T>(
      n,
      [&](int64_t i, int) {
        const Lanes<T> p = x ? lexp(lload(x + i) - M - L) : lset<T>(0);
        lstore(dx + i, value(p, plain ? p : class_weight(w, i)));
      },
      [&](int64_t i, int64_t left) {
        const Lanes<T> p = x ? lexp(lload_n<T>(x + i, left, T(0)) - M - L) : lset<T>(0);
        lstore_n(dx + i, value(p, plain ? p : class_weight(w, i, left)), left);
      });
}

template <class T> void backward(const CrossEntropyBackwardArgs& a) {
  const Plan<T> plan(a.workspace, a.weight, a.dtype, a.rows, a.cols);
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  const bool each_row = a.reduction == LossReduction::kNone;
  double whole = each_row || a.rows == 0 ? 0 : static_cast<double>(load_one<T>(a.grad, a.dtype));
  if (a.reduction == LossReduction::kMean) whole /= *a.total_weight;
  const auto gradient_of = [&](int64_t r) {
    return each_row ? static_cast<double>(load_one<T>(at(a.grad, a.dtype, r), a.dtype)) : whole;
  };
  const auto own_of = [&](int64_t t) {
    return sharp * (plan.weight ? static_cast<double>(plan.weight[t]) : 1.0);
  };
  if (a.inner > 1) {
    run_tasks(ceil_div(a.rows, kLossGroup), a.rows * a.cols * bytes_of(a.dtype),
              [&](int64_t group, int) {
                by_image(group * kLossGroup, imin(a.rows, (group + 1) * kLossGroup), a.inner,
                         [&](int64_t r, int64_t n) {
                           backward_pixels(a, plan.weight, smooth * plan.weight_sum, smooth, r, n,
                                           gradient_of, own_of);
                         });
              });
    return;
  }
  by_rows(a.rows, a.cols, a.dtype, [&](int64_t first, int64_t end, int slot) {
    char* buffers = slot_buffers(plan.buffers, a.cols, 2, slot);
    for (int64_t r = first; r < end; ++r) {
      T* dx = row_out<T>(a.dx, a.dtype, r, a.cols, buffers, 1);
      const int64_t t = a.target[r];
      if (t == a.ignore_index) {
        __builtin_memset(dx, 0, static_cast<size_t>(a.cols) * sizeof(T));
      } else {
        const T* x = a.log_probs ? nullptr : row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
        const double g = gradient_of(r), one = own_of(t), all = one + smooth * plan.weight_sum;
        backward_row<T>(x, plan.weight, x ? static_cast<const T*>(a.statistics) + 2 * r : nullptr,
                        dx, a.cols, static_cast<T>(g * all), static_cast<T>(-g * smooth));
        dx[t] = static_cast<T>(static_cast<double>(dx[t]) - g * one);
      }
      row_done(a.dx, a.dtype, r, a.cols, dx);
    }
  });
}

template <class T> void rows(const CrossEntropyRowsArgs& a) {
  const Plan<T> plan(a.workspace, a.weight, a.weight_dtype, a.rows, a.cols);
  const double sharp = 1 - a.smoothing, smooth = a.smoothing / static_cast<double>(a.cols);
  const bool each = a.reduction == LossReduction::kNone, mean = a.reduction == LossReduction::kMean;
  const auto gradient_of = [&](int64_t r) {
    const double g =
        a.grad
            ? static_cast<double>(load_one<T>(at(a.grad, a.grad_dtype, each ? r : 0), a.grad_dtype))
            : 1;
    return mean ? g / *a.total_weight : g;
  };
  by_rows(a.rows, a.cols, a.dtype, [&](int64_t first, int64_t end, int slot) {
    char* buffers = slot_buffers(plan.buffers, a.cols, 2, slot);
    for (int64_t r = first; r < end; ++r) {
      const int64_t t = a.target[r];
      if (t == a.ignore_index) {
        if (a.losses) a.losses[r] = 0;
        if (!a.gradient) continue;
        T* dx = row_out<T>(a.x, a.dtype, r, a.cols, buffers, 1);
        __builtin_memset(dx, 0, static_cast<size_t>(a.cols) * sizeof(T));
        row_done(a.x, a.dtype, r, a.cols, dx);
        continue;
      }
      const T* x = row_in<T>(a.x, a.dtype, r, a.cols, buffers, 0);
      T st[2];
      statistics_of(x, a.cols, st);
      const double w = plan.weight ? static_cast<double>(plan.weight[t]) : 1.0, one = sharp * w;
      if (a.losses) {
        double loss = one * (static_cast<double>(st[1]) -
                             (static_cast<double>(x[t]) - static_cast<double>(st[0])));
        if (a.smoothing != 0)
          loss += smooth * (static_cast<double>(st[1]) * plan.weight_sum -
                            static_cast<double>(weighted_sum(x, plan.weight, a.cols, st[0])));
        a.losses[r] = loss;
      }
      if (!a.gradient) continue;
      const double g = gradient_of(r), all = one + smooth * plan.weight_sum;
      T* dx = row_out<T>(a.x, a.dtype, r, a.cols, buffers, 1);
      backward_row<T>(x, plan.weight, st, dx, a.cols, static_cast<T>(g * all),
                      static_cast<T>(-g * smooth));
      dx[t] = static_cast<T>(static_cast<double>(dx[t]) - g * one);
      row_done(a.x, a.dtype, r, a.cols, dx);
    }
  });
}

template <class T> void consume(const CrossEntropyConsumeArgs& a) {
  const Plan<T> plan(a.workspace, a.weight, a.dtype, a.rows, a.cols);
  const int64_t groups = ceil_div(a.rows, kLossGroup);
  double total_weight = 0;
  for (int64_t g = 0; g < groups; ++g) {  // groups as in the forward pass
    double sum = 0;
    for (int64_t r = g * kLossGroup; r < imin(a.rows, (g + 1) * kLossGroup); ++r)
      if (const int64_t t = a.target[r]; t != a.ignore_index)
        sum += plan.weight ? static_cast<double>(plan.weight[t]) : 1.0;
    total_weight += sum;
  }
  *a.total_weight = total_weight;
  // The rows' losses come after the memory that rows() needs.
  auto* losses = reinterpret_cast<double*>(
      static_cast<char*>(a.workspace) +
      cross_entropy_workspace(a.dtype, a.rows, a.cols, max_parallel_slots()));
  rows<T>({a.x, a.target, a.weight, losses, nullptr, a.total_weight, a.workspace, a.rows, a.cols,
           a.ignore_index, a.smoothing, a.dtype, a.dtype, a.dtype, a.reduction, true});
  double loss = 0;
  for (int64_t g = 0; g < groups; ++g) {
    double sum = 0;
    for (int64_t r = g * kLossGroup; r < imin(a.rows, (g + 1) * kLossGroup); ++r) sum += losses[r];
    loss += sum;
  }
  store_one(a.loss, a.dtype,
            static_cast<T>(a.reduction == LossReduction::kMean ? loss / total_weight : loss));
}

template <class T> void scale(const ScaleByArgs& a) {
  const T k = load_one<T>(a.factor, a.factor_dtype);
  if (k == T(1)) return;
  run_tasks(ceil_div(a.n, kChunk), a.n * bytes_of(a.dtype), [&](int64_t task, int) {
    T buffer[kChunk];
    const int64_t n = imin(kChunk, a.n - task * kChunk);
    char* at_x = at(a.x, a.dtype, task * kChunk);
    load_chunk(at_x, a.dtype, 1, n, buffer);
    for (int64_t i = 0; i < n; ++i) buffer[i] *= k;
    store_chunk(at_x, a.dtype, 1, n, buffer);
  });
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { forward<decltype(t)>(a); });
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& a) {
  if (a.rows == 0) return;
  by_floating_type(a.dtype, [&](auto t) { backward<decltype(t)>(a); });
}

void cross_entropy_consume(const CrossEntropyConsumeArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { consume<decltype(t)>(a); });
}

void cross_entropy_rows(const CrossEntropyRowsArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { rows<decltype(t)>(a); });
}

void scale_by(const ScaleByArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { scale<decltype(t)>(a); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
