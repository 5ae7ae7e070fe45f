// Attention in float64 with the whole matrix of scores, by plain loops.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace ramet::kernels {

struct AttentionTwin {
  int64_t matrices, q_rows, k_rows, columns;
  double scale;
  bool causal;
  // Dense [matrices, rows, columns].
  std::vector<double> q, k, v, grad, o{}, dq{}, dk{}, dv{}, log_sum{};

  void run() {
    const auto values = [&](int64_t rows) {
      return std::vector<double>(static_cast<size_t>(matrices * rows * columns));
    };
    o = dq = values(q_rows), dk = dv = values(k_rows);
    log_sum.assign(static_cast<size_t>(matrices * q_rows), -INFINITY);
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t i = 0; i < q_rows; ++i) row(m, i);
  }

 private:
  static double* line(std::vector<double>& x, int64_t row, int64_t columns) {
    return x.data() + row * columns;
  }
  double dot(const double* x, const double* y) const {
    double s = 0;
    for (int64_t c = 0; c < columns; ++c) s += x[c] * y[c];
    return s;
  }
  void row(int64_t m, int64_t i) {
    const int64_t at = m * q_rows + i, keys = causal && i + 1 < k_rows ? i + 1 : k_rows;
    double *x = line(q, at, columns), *y = line(o, at, columns), *g = line(grad, at, columns),
           *dx = line(dq, at, columns);
    std::vector<double> p(static_cast<size_t>(keys));
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      p[static_cast<size_t>(j)] = scale * dot(x, line(k, m * k_rows + j, columns));
      most = std::max(most, p[static_cast<size_t>(j)]);
    }
    if (most == -INFINITY) return;
    for (double& e : p) sum += e = std::exp(e - most);
    log_sum[static_cast<size_t>(at)] = most + std::log(sum);
    for (int64_t j = 0; j < keys; ++j) {
      const double* values = line(v, m * k_rows + j, columns);
      p[static_cast<size_t>(j)] /= sum;
      for (int64_t c = 0; c < columns; ++c) y[c] += p[static_cast<size_t>(j)] * values[c];
    }
    const double d = dot(g, y);
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t key = m * k_rows + j;
      const double pj = p[static_cast<size_t>(j)],
                   slope = pj * (dot(g, line(v, key, columns)) - d) * scale;
      for (int64_t c = 0; c < columns; ++c) {
        dx[c] += slope * line(k, key, columns)[c];
        line(dk, key, columns)[c] += slope * x[c];
        line(dv, key, columns)[c] += pj * g[c];
      }
    }
  }
};

}  // namespace ramet::kernels
