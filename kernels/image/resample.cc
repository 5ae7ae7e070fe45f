// Tables, which are small compared with the images, hold the inputs of each output. Along rows the
// weights of one tap are contiguous, so that neighbours are computed together. Down columns whole
// rows are added. The direction with less work comes first, a row at a time, in the caches.
#include "kernels/image/resample.h"

#include "kernels/copy/chunk.h"
#include "kernels/image/resample_weights.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

struct Arena {
  char* p;
  template <class U> RAMET_INLINE U* take(int64_t n) {
    U* r = reinterpret_cast<U*>(p);
    p += (n * static_cast<int64_t>(sizeof(U)) + 7) / 8 * 8;
    return r;
  }
};

// Result r is the sum of weight[begin[r] + k] times input first[r] + k.
template <class T> struct Table {
  int64_t rows, inputs, most;
  int64_t *begin, *first;
  T* weight;
  RAMET_INLINE int64_t count(int64_t r) const { return begin[r + 1] - begin[r]; }
  RAMET_INLINE const T* weights(int64_t r) const { return weight + begin[r]; }

  RAMET_INLINE Table(int64_t rows_, int64_t inputs_, int64_t entries, Arena& arena)
      : rows(rows_), inputs(inputs_), most(0) {
    begin = arena.take<int64_t>(rows + 1), first = arena.take<int64_t>(rows);
    weight = arena.take<T>(entries);
    begin[0] = 0;
  }
  RAMET_INLINE void close(int64_t r, int64_t count) {
    begin[r + 1] = begin[r] + count;
    most = imax(most, count);
  }
};

template <class T> Table<T> table_of(const ResampleAxis& a, bool backward, Arena& arena) {
  const int64_t taps = resample_taps(a), entries = a.out * taps;
  Table<T> f(a.out, a.in, entries, arena);
  for (int64_t o = 0; o < a.out; ++o)
    f.close(o, resample_row(a, taps, o, f.first + o, f.weight + f.begin[o]));
  if (!backward) return f;
  // The outputs that have input i are also neighbours.
  Table<T> t(a.in, a.out, entries, arena);
  for (int64_t i = 0, low = 0, end = 0; i < a.in; ++i) {
    while (low < a.out && f.first[low] + f.count(low) <= i) ++low;
    while (end < a.out && f.first[end] <= i) ++end;
    t.first[i] = low;
    for (int64_t o = low; o < end; ++o)
      t.weight[t.begin[i] + o - low] = f.weights(o)[i - f.first[o]];
    t.close(i, imax(end - low, 0));
  }
  return t;
}

// A table by taps. A missing tap of a result is the element after the inputs, a 0, times 0.
template <class T> struct Columns {
  int64_t rows, taps = 0;
  int32_t* at;
  T* weight;
  Columns(const Table<T>& t, Arena& arena) : rows(t.rows) {
    if (t.most > kResampleRows || t.inputs >= INT32_MAX) return;
    taps = t.most;
    at = arena.take<int32_t>(rows * taps), weight = arena.take<T>(rows * taps);
    for (int64_t k = 0; k < taps; ++k)
      for (int64_t r = 0; r < rows; ++r) {
        const bool there = k < t.count(r);
        at[k * rows + r] = static_cast<int32_t>(there ? t.first[r] + k : t.inputs);
        weight[k * rows + r] = there ? t.weights(r)[k] : T(0);
      }
  }
};

// to = the sum of count rows of n elements, row(k) times weight[k].
template <class T, class F>
RAMET_INLINE void combine(T* __restrict to, int64_t n, int64_t count, const T* weight,
                          const F& row) {
  if (count == 0) {
    for (int64_t j = 0; j < n; ++j) to[j] = T(0);
    return;
  }
  if (count == 1) {
    const T* __restrict p = row(0);
    const T w = weight[0];
    if (w == T(1)) memcpy(to, p, static_cast<size_t>(n) * sizeof(T));
    else
      for (int64_t j = 0; j < n; ++j) to[j] = w * p[j];
    return;
  }
  for (int64_t k = 0; k < count; k += 2) {
    const bool two = k + 1 < count;
    const T* __restrict p = row(k), * __restrict q = two ? row(k + 1) : p;
    const T w = weight[k], v = two ? weight[k + 1] : T(0);
    if (k == 0)
      for (int64_t j = 0; j < n; ++j) to[j] = w * p[j] + v * q[j];
    else if (two)
      for (int64_t j = 0; j < n; ++j) to[j] = to[j] + w * p[j] + v * q[j];
    else
      for (int64_t j = 0; j < n; ++j) to[j] = to[j] + w * p[j];
  }
}

template <class T> struct Images {
  const ResampleArgs& a;
  const Table<T>&h, &w;
  const Columns<T>& columns;
  int64_t in, out;  // elements of a row
  bool across_first;

  Images(const ResampleArgs& args, const Table<T>& h_, const Table<T>& w_, const Columns<T>& c)
      : a(args),
        h(h_),
        w(w_),
        columns(c),
        in(w_.inputs * args.inner),
        out(w_.rows * args.inner),
        across_first(h_.inputs <= h_.rows && h_.most <= kResampleRows) {}

  RAMET_INLINE bool direct() const { return a.dtype == ComputeTag<T>::value; }
  RAMET_INLINE int64_t stride_in() const { return in + 16; }
  RAMET_INLINE int64_t stride_out() const { return out + 16; }

  // n elements from `from` on of row r: in place, or converted.
  RAMET_INLINE const T* source(int64_t from, int64_t n, T* buffer) const {
    const char* p = at(a.x, a.dtype, from);
    if (direct()) return reinterpret_cast<const T*>(p);
    load_chunk(p, a.dtype, 1, n, buffer);
    return buffer;
  }
  RAMET_INLINE T* target(int64_t from, T* buffer) const {
    return direct() ? static_cast<T*>(a.y) + from : buffer;
  }
  RAMET_INLINE void done(int64_t from, int64_t n, const T* buffer) const {
    if (!direct()) store_chunk(at(a.y, a.dtype, from), a.dtype, 1, n, buffer);
  }

  // A row along its length; x[in] is writable.
  void across(T* __restrict x, T* __restrict y) const {
    if (a.inner == 1 && columns.taps > 0) {
      x[in] = T(0);
      const int32_t* __restrict place = columns.at;
      const T* __restrict weight = columns.weight;
      const int64_t n = columns.rows;
      for (int64_t k = 0; k < columns.taps;) {
        const int32_t* __restrict next = place + n;
        const T* __restrict after = weight + n;
        const int64_t step = k + 1 < columns.taps ? 2 : 1;
        if (step == 2 && k == 0)
          for (int64_t j = 0; j < n; ++j) y[j] = weight[j] * x[place[j]] + after[j] * x[next[j]];
        else if (step == 2)
          for (int64_t j = 0; j < n; ++j)
            y[j] = y[j] + weight[j] * x[place[j]] + after[j] * x[next[j]];
        else if (k == 0)
          for (int64_t j = 0; j < n; ++j) y[j] = weight[j] * x[place[j]];
        else
          for (int64_t j = 0; j < n; ++j) y[j] = y[j] + weight[j] * x[place[j]];
        place += step * n, weight += step * n, k += step;
      }
      return;
    }
    for (int64_t o = 0; o < w.rows; ++o) {
      const T* p = x + w.first[o] * a.inner;
      if (a.inner > 1) {
        combine(y + o * a.inner, a.inner, w.count(o), w.weights(o),
                [&](int64_t k) { return p + k * a.inner; });
        continue;
      }
      T sum = T(0);
      for (int64_t k = 0; k < w.count(o); ++k) sum += w.weights(o)[k] * p[k];
      y[o] = sum;
    }
  }

  // Results of rows o0 .. o1 of a plane.
  void rows(int64_t plane, int64_t o0, int64_t o1, T* buffers) const {
    T *row = buffers, *converted = row + stride_in(), *ring = converted + 2 * stride_in(),
      *result = ring + kResampleRows * stride_out();
    const auto input = [&](int64_t r, T* buffer) {
      return source((plane * h.inputs + r) * in, in, buffer);
    };
    const auto kept = [&](int64_t r) { return ring + r % kResampleRows * stride_out(); };
    int64_t have = 0;
    for (int64_t o = o0; o < o1; ++o) {
      const int64_t first = h.first[o], count = h.count(o), to = (plane * h.rows + o) * out;
      T* y = target(to, result);
      if (across_first) {
        for (have = imax(have, first); have < first + count; ++have) {
          const T* x = input(have, row);
          if (x != row) memcpy(row, x, static_cast<size_t>(in) * sizeof(T));
          across(row, kept(have));
        }
        combine(y, out, count, h.weights(o), [&](int64_t k) { return kept(first + k); });
      } else {
        combine(row, in, count, h.weights(o),
                [&](int64_t k) { return input(first + k, converted + k % 2 * stride_in()); });
        across(row, y);
      }
      done(to, out, result);
    }
  }
  // The same if nothing changes along a row: piece by piece.
  void columns_alone(int64_t plane, int64_t o0, int64_t o1) const {
    T first[kChunk], second[kChunk], result[kChunk];
    for (int64_t o = o0; o < o1; ++o)
      for (int64_t j = 0; j < in; j += kChunk) {
        const int64_t n = imin(kChunk, in - j), to = (plane * h.rows + o) * out + j;
        combine(target(to, result), n, h.count(o), h.weights(o), [&](int64_t k) {
          return source((plane * h.inputs + h.first[o] + k) * in + j, n, k % 2 ? second : first);
        });
        done(to, n, result);
      }
  }
};

template <class T> void run(const ResampleArgs& a) {
  Arena arena{static_cast<char*>(a.workspace)};
  const Table<T> h = table_of<T>(a.h, a.backward, arena), w = table_of<T>(a.w, a.backward, arena);
  const Columns<T> columns(w, arena);
  const Images<T> images(a, h, w, columns);
  constexpr int64_t kTask = 1 << 12;  // elements that are read and written
  const int64_t each_row = (h.inputs * images.in + h.rows * images.out) / h.rows,
                each = imax(1, kTask / imax(1, each_row)), all = a.planes * h.rows,
                buffer = 3 * images.stride_in() + (kResampleRows + 1) * images.stride_out();
  T* buffers = arena.take<T>(0);
  // Pieces of so many rows, which may begin and end inside a plane.
  run_tasks(ceil_div(all, each),
            a.planes * (h.inputs * images.in + h.rows * images.out) * bytes_of(a.dtype),
            [&](int64_t task, int slot) {
              for (int64_t r = task * each, end = imin(all, r + each); r < end;) {
                const int64_t plane = r / h.rows, o = r - plane * h.rows,
                              last = imin(h.rows, o + end - r);
                if (a.w.how == Resampling::kNone) images.columns_alone(plane, o, last);
                else images.rows(plane, o, last, buffers + slot * buffer);
                r += last - o;
              }
            });
}

}  // namespace

void resample(const ResampleArgs& a) {
  if (a.dtype == ScalarType::Double) run<double>(a);
  else run<float>(a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
