// Rows of products and of row kernels for arms that are no tensor libraries (Eigen, OpenBLAS). Such
// an arm defines one function for each row and includes this file.
#pragma once
#include <vector>

#include "rows.h"
#include "rows_data.h"

namespace {

struct Matrices {
  int64_t m, n, k;
  bool trans_a, trans_b;  // a is stored (k, m), b is stored (n, k)
  std::vector<float> a, b, c;
};
Matrices x;

void multiply(const Matrices&, float* c);

template <int M, int N, int K, char Layout> void setup_mm() {
  x = {M, N, K, Layout == 'T' || Layout == 'X', Layout == 'B' || Layout == 'X', {}, {}, {}};
  x.a.resize(size_t(M) * K), x.b.resize(size_t(N) * K), x.c.resize(size_t(M) * N);
  fill_row_data(x.a.data(), M * K, 1, 0), fill_row_data(x.b.data(), N * K, 1, 1);
}
void run_mm(long times) {
  for (long i = 0; i < times; ++i) multiply(x, x.c.data());
}
int c_values(double* values, int room) {
  return sample_values(x.c.data(), int64_t(x.c.size()), values, room);
}
void clear() { x = Matrices(); }

constexpr int kRowCount = 4096, kRowLength = 1024;
inline void setup_rows() {
  x = {kRowCount, kRowLength, 0, false, false, {}, {}, {}};
  x.a.resize(size_t(kRowCount) * kRowLength), x.b.resize(2 * kRowLength), x.c.resize(x.a.size());
  fill_row_data(x.a.data(), int64_t(x.a.size()), 2, 0);
  fill_row_data(x.b.data(), kRowLength, 1, 1);
  fill_row_data(x.b.data() + kRowLength, kRowLength, 1, 2);
}

}  // namespace

#define RAMET_MM(label, m, n, k, layout, inner) \
  { "mm " label, "us", 1e6, 0, inner, setup_mm<m, n, k, layout>, run_mm, c_values, clear }
