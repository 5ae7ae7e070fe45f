#include "tools/emulated_gpu/blas/matrix_product.h"

#include <Eigen/Core>
#include <cmath>
#include <type_traits>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/half_types.h"

namespace ramet::emulated {
namespace {

/// Calls function(T()) with the type that a layout's elements have.
template <class Function> void with_type(cudaDataType_t type, Function function) {
  switch (type) {
    case CUDA_R_32F: return function(float());
    case CUDA_R_64F: return function(double());
    case CUDA_R_16F: return function(__half{});
    case CUDA_R_16BF: return function(__nv_bfloat16{});
    default: return;  // refused by fits()
  }
}

int64_t offset(const Layout& layout, int64_t row, int64_t column) {
  return layout.row_major ? row * layout.stride + column : column * layout.stride + row;
}

template <class T> using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// Takes whole matrices: each further kind of operand compiles Eigen's product once more.
template <class T> Matrix<T> product_of(const Matrix<T>& a, const Matrix<T>& b) { return a * b; }

/// op(X) of one matrix as the type that is computed in.
template <class Compute, class T>
Matrix<Compute> load(const Layout& layout, const T* data, bool transpose) {
  Matrix<Compute> matrix(layout.rows, layout.columns);
  for (int64_t column = 0; column < layout.columns; ++column)
    for (int64_t row = 0; row < layout.rows; ++row)
      matrix(row, column) = static_cast<Compute>(data[offset(layout, row, column)]);
  if (transpose) matrix.transposeInPlace();
  return matrix;
}

// 0.5 x (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3): Hendrycks and Gimpel 2016.
template <class T> T gelu(T x) {
  const T u = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (1 + std::tanh(u));
}
template <class T> T gelu_derivative(T x) {
  const T k = T(0.79788456080286535588), th = std::tanh(k * (x + T(0.044715) * x * x * x));
  return T(0.5) * (1 + th) + T(0.5) * x * (1 - th * th) * k * (1 + 3 * T(0.044715) * x * x);
}

/// D's elements are of type D. `aux` is null where the product has none.
template <class D, class T>
void run_one(const MatrixProduct& p, const T* a, const T* b, const D* c, D* d, D* aux) {
  using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto left = load<Compute>(p.a, a, p.transpose_a);
  const auto right = load<Compute>(p.b, b, p.transpose_b);
  Matrix<Compute> product;
  if (p.halves) {
    const Eigen::Index first = left.cols() / 2, second = left.cols() - first;
    product = product_of<Compute>(left.leftCols(first), right.topRows(first));
    product = product.unaryExpr([](Compute x) { return static_cast<Compute>(D(x)); });
    product += product_of<Compute>(left.rightCols(second), right.bottomRows(second));
  } else {
    product = product_of(left, right);
  }
  Matrix<Compute> sums;
  if (p.sums == Sums::kOfA) sums = left.rowwise().sum();
  if (p.sums == Sums::kOfB) sums = right.colwise().sum().transpose();
  if (p.sums == Sums::kOfD) sums = Matrix<Compute>::Zero(p.d.rows, 1);
  const Layout around = aux_layout(p);
  const auto* bias = static_cast<const D*>(p.bias);
  const auto alpha = static_cast<Compute>(p.alpha), beta = static_cast<Compute>(p.beta);
  for (int64_t column = 0; column < p.d.columns; ++column)
    for (int64_t row = 0; row < p.d.rows; ++row) {
      Compute value = alpha * product(row, column);
      if (beta != 0) value += beta * static_cast<Compute>(c[offset(p.c, row, column)]);
      if (bias) value += static_cast<Compute>(bias[row]);
      // It also sets NaN to 0: forums.developer.nvidia.com, thread 329783.
      if (p.activation == Activation::kRelu && !(value > 0)) value = 0;
      if (p.activation == Activation::kGelu) {
        if (aux) aux[offset(around, row, column)] = D(value);
        value = gelu(value);
      }
      if (p.activation == Activation::kGeluBackward)
        value *= gelu_derivative(static_cast<Compute>(aux[offset(around, row, column)]));
      if (p.sums == Sums::kOfD) sums(row, 0) += value;
      d[offset(p.d, row, column)] = D(value);
    }
  auto* const to = static_cast<D*>(p.sums_to);
  for (Eigen::Index i = 0; i < sums.rows(); ++i) to[i] = D(sums(i, 0));
}

void tell_checker(const Layout& layout, const void* data, bool write) {
  const auto* first = static_cast<const char*>(data);
  const size_t lines = size_t(layout.row_major ? layout.rows : layout.columns);
  const size_t line = size_t(layout.row_major ? layout.columns : layout.rows);
  for (size_t i = 0; i < lines; ++i) {
    const char* at = first + i * size_t(layout.stride) * layout.element_bytes();
    if (write) host_writes(const_cast<char*>(at), line * layout.element_bytes());
    else host_reads(at, line * layout.element_bytes());
  }
}

/// T: the type of A and B, D: that of C and D.
template <class T, class D>
void run_batch(const MatrixProduct& p, const void* a, const void* b, const void* c, void* d) {
  for (int64_t i = 0; i < p.d.batch; ++i) {
    const auto* first_a = static_cast<const T*>(a) + i * p.a.batch_stride;
    const auto* first_b = static_cast<const T*>(b) + i * p.b.batch_stride;
    const auto* first_c = static_cast<const D*>(c) + (c ? i * p.c.batch_stride : 0);
    auto* first_d = static_cast<D*>(d) + i * p.d.batch_stride;
    auto* const first_aux = p.aux ? static_cast<D*>(p.aux) + i * p.aux_batch_stride : nullptr;
    tell_checker(p.a, first_a, false);
    tell_checker(p.b, first_b, false);
    if (p.beta != 0) tell_checker(p.c, first_c, false);
    if (p.bias) host_reads(p.bias, size_t(p.d.rows) * sizeof(D));
    const Layout aux = aux_layout(p);
    if (p.activation == Activation::kGeluBackward) tell_checker(aux, first_aux, false);
    run_one<D>(p, first_a, first_b, first_c, first_d, first_aux);
    tell_checker(p.d, first_d, true);
    if (p.activation == Activation::kGelu && first_aux) tell_checker(aux, first_aux, true);
    if (p.sums_to) host_writes(p.sums_to, size_t(sums_count(p)) * sizeof(D));
  }
}

}  // namespace

size_t Layout::element_bytes() const {
  size_t bytes = 0;
  with_type(type, [&](auto element) { bytes = sizeof element; });
  return bytes;
}

int64_t Layout::extent() const {
  if (!rows || !columns || !batch) return 0;
  return offset(*this, rows - 1, columns - 1) + 1 + (batch - 1) * batch_stride;
}

bool Layout::legal() const {
  return rows >= 0 && columns >= 0 && batch >= 1 && batch_stride >= 0 && element_bytes() != 0 &&
         stride >= std::max<int64_t>(1, row_major ? columns : rows);
}

bool fits(const MatrixProduct& p) {
  for (const Layout* layout : {&p.a, &p.b, &p.c, &p.d})
    if (!layout->legal() || layout->batch != p.d.batch) return false;
  if (p.b.type != p.a.type || p.c.type != p.d.type) return false;
  // 16-bit matrices have a product in float32, too. Of epilogues of such a product no caller knows.
  if (p.d.type != p.a.type &&
      (p.a.element_bytes() != 2 || p.d.type != CUDA_R_32F || p.bias || p.has_aux ||
       p.activation != Activation::kNone || p.sums != Sums::kNone))
    return false;
  const int64_t m = p.transpose_a ? p.a.columns : p.a.rows;
  const int64_t k = p.transpose_a ? p.a.rows : p.a.columns;
  const int64_t inner = p.transpose_b ? p.b.columns : p.b.rows;
  const int64_t n = p.transpose_b ? p.b.rows : p.b.columns;
  // cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD and ..._AUX_BATCH_STRIDE.
  if (p.has_aux &&
      (p.aux_stride % 8 || p.aux_stride < std::max<int64_t>(1, p.d.rows) || p.aux_batch_stride % 8))
    return false;
  return k == inner && p.d.rows == m && p.d.columns == n && p.c.rows == m && p.c.columns == n &&
         p.c.row_major == p.d.row_major;
}

int64_t sums_count(const MatrixProduct& p) {
  return p.sums == Sums::kNone ? 0 : p.sums == Sums::kOfB ? p.d.columns : p.d.rows;
}

Layout aux_layout(const MatrixProduct& p) {
  Layout layout = p.d;
  layout.stride = p.aux_stride;
  layout.batch_stride = p.aux_batch_stride;
  return layout;
}

void run_product(const MatrixProduct& p, const void* a, const void* b, const void* c, void* d) {
  with_type(p.a.type, [&](auto element) {
    using T = decltype(element);
    if (p.d.type == p.a.type) run_batch<T, T>(p, a, b, c, d);
    else if constexpr (sizeof(T) == 2) run_batch<T, float>(p, a, b, c, d);
  });
}

}  // namespace ramet::emulated
