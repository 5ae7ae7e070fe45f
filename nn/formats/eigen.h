// Views of Eigen's matrices and tensors over the same memory. Only programs that have Eigen 3 use
// this header; the library itself does not include it.
//
//   auto m = as_eigen_row_major<float>(tensor);   // m(i, j) is tensor[i][j], no copy
//   Tensor t = from_eigen(a * b);                 // t[i][j] is (a * b)(i, j), copied
//   Tensor v = view_of_eigen(matrix);             // v[i][j] is matrix(i, j), no copy
//
// Positions always mean the same: row i, column j. Only the order in memory differs. Eigen's
// matrices are column-major by default, so the type of a view of a tensor's memory says RowMajor.
// Assign the view to an Eigen::MatrixXf to get a column-major copy.
#pragma once
#include <Eigen/Core>
#include <memory>
#include <type_traits>
#include <utility>

#include "autograd/ops/make/factory.h"
#include "autograd/tensor.h"

namespace ramet {

/// Eigen's matrix with the order of a contiguous tensor's elements.
template <class T>
using RowMajorMatrix =
    Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// `T` may be const: then nothing can be written through it.
template <class T>
using RowMajorMap = Eigen::Map<
    std::conditional_t<std::is_const<T>::value, const RowMajorMatrix<T>, RowMajorMatrix<T>>,
    Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
/// Eigen's column vector, and one over memory with a stride:
template <class T> using VectorOf = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>;
template <class T>
using VectorMap =
    Eigen::Map<std::conditional_t<std::is_const<T>::value, const VectorOf<T>, VectorOf<T>>,
               Eigen::Unaligned, Eigen::InnerStride<Eigen::Dynamic>>;

namespace detail {
template <class T> T* eigen_data(const char* op, const Tensor& t, int64_t dim) {
  RAMET_CHECK(t.defined(), op, "undefined tensor");
  RAMET_CHECK(t.is_cpu(), op, "got ", describe(t), ", expected a tensor on a CPU");
  RAMET_CHECK(t.dim() == dim, op, "got ", describe(t), ", expected ", dim, " dimensions");
  RAMET_CHECK(t.scalar_type() == ScalarTypeOf<std::remove_const_t<T>>::value, op, "got ",
              describe(t), ", expected elements of ",
              short_name_of(ScalarTypeOf<std::remove_const_t<T>>::value));
  return t.data_ptr<std::remove_const_t<T>>();
}
}  // namespace detail

/// A 2-dimensional tensor's memory, with any strides, as a matrix; the tensor must outlive it. A
/// write through the matrix is no operation: it changes no version counter and makes no history.
template <class T> RowMajorMap<T> as_eigen_row_major(const Tensor& t) {
  T* const data = detail::eigen_data<T>("as_eigen_row_major", t, 2);
  return {data, t.size(0), t.size(1),
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(t.stride(0), t.stride(1))};
}
/// The same of a 1-dimensional one, as a column.
template <class T> VectorMap<T> as_eigen_vector(const Tensor& t) {
  T* const data = detail::eigen_data<T>("as_eigen_vector", t, 1);
  return {data, t.size(0), Eigen::InnerStride<Eigen::Dynamic>(t.stride(0))};
}

/// A new contiguous tensor of any matrix, vector or expression of Eigen's: [rows, columns], of a
/// vector by its type [size].
template <class Derived> Tensor from_eigen(const Eigen::DenseBase<Derived>& expression) {
  using T = typename Derived::Scalar;
  const TensorOptions options(ScalarTypeOf<T>::value);
  const Derived& e = expression.derived();
  if constexpr (Derived::IsVectorAtCompileTime) {
    Tensor t = empty({e.size()}, options);
    auto out = as_eigen_vector<T>(t);
    if constexpr (Derived::ColsAtCompileTime == 1) out = e.matrix();
    else out = e.matrix().transpose();
    return t;
  } else {
    Tensor t = empty({e.rows(), e.cols()}, options);
    as_eigen_row_major<T>(t) = e.matrix();
    return t;
  }
}

/// A tensor over the memory of a matrix or vector that can be written (no expression), which must
/// outlive it and keep its size. Of a column-major matrix its strides are {1, rows}.
template <class Derived> Tensor view_of_eigen(Eigen::PlainObjectBase<Derived>& matrix) {
  using T = typename Derived::Scalar;
  const TensorOptions options(ScalarTypeOf<T>::value);
  Derived& m = matrix.derived();
  if constexpr (Derived::IsVectorAtCompileTime) {
    return from_blob(m.data(), {m.size()}, {m.innerStride()}, options);
  } else {
    return from_blob(m.data(), {m.rows(), m.cols()}, {m.rowStride(), m.colStride()}, options);
  }
}
/// The same; the tensor owns the matrix.
template <class Derived> Tensor own_eigen(Derived&& matrix) {
  static_assert(!std::is_lvalue_reference<Derived>::value, "own_eigen(std::move(matrix))");
  using T = typename Derived::Scalar;
  const auto owner = std::make_shared<Derived>(std::move(matrix));
  const auto hold = [owner](void*) {};
  const TensorOptions options(ScalarTypeOf<T>::value);
  if constexpr (Derived::IsVectorAtCompileTime) {
    return from_blob(owner->data(), {owner->size()}, {owner->innerStride()}, hold, options);
  } else {
    return from_blob(owner->data(), {owner->rows(), owner->cols()},
                     {owner->rowStride(), owner->colStride()}, hold, options);
  }
}

}  // namespace ramet
