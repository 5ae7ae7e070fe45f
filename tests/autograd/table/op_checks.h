// The checks that every row of the operation table goes through; each reports through GoogleTest.
#pragma once
#include "tests/autograd/table/op_table.h"

namespace ramet {
namespace op_table {

inline const Device kHost(kCPU, 0);

/// The tensors on `device`.
std::vector<Tensor> moved(V tensors, Device device);

// Checks that take a device make their inputs there. On a GPU they are made in the row's own dtype.
// Kernels of other dtypes differ in how they read and write an element, which the check of values
// covers.
std::vector<ScalarType> types_on(Device device, const Row& row, std::vector<ScalarType> types);

/// The row has an empty and a 0-dim sample (or refuses a 0-dim tensor) and takes NaN and
/// infinities. It has a large sample that several threads work on (or the result is a view, which
/// moves nothing), and slices for check_positions. Where it lacks one of these it gives its reason,
/// which is printed. A reason without need fails too.
void check_complete(const Row& row);
/// All dtypes that the row takes, if the reference's values hold for them; only its own, if it has
/// no real input.
std::vector<ScalarType> every_type(const Row& row);
/// Values and dtype of the result, for every sample and every dtype the row takes.
void check_forward(const Row& row);
/// Every other dtype is an Error.
void check_refusals(const Row& row, Device device = kHost);
/// gradcheck and gradgradcheck of every sample; or no history, where the row has no gradient.
void check_derivatives(const Row& row);
/// Gradients of float32, float16 and bfloat16 inputs have their dtype and nearly float64's values.
void check_narrow_gradients(const Row& row);
/// Inputs that are transposed, spaced out or at an offset.
void check_strides(const Row& row, Device device = kHost);
/// 4-D inputs in internal layout (autograd/graph/layout.h), with gradients, also while another
/// thread reads them as rows.
void check_images(const Row& row, Device device = kHost);
/// NaN, infinities and both zeros among the inputs: what the reference gives.
void check_special_values(const Row& row, Device device = kHost);
/// The same bits, gradients included, for 1, 2, 3 and 7 threads in each variant. The dtypes are the
/// row's own, float64 and bfloat16. v3 and v4 agree bit by bit, the baseline is right.
void check_threads_and_variants(const Row& row);
/// Slices of 1 to 67 elements (rows, columns), on a GPU of some of these lengths, at changing
/// offsets, give the bits of the whole.
void check_positions(const Row& row, Device device = kHost);
/// x.op_(...) gives the bits and gradients of op(x, ...), in x's memory, and raises the version.
void check_in_place(const Row& row, Device device = kHost);
/// op_out(out, ...) gives the bits of op(...), whatever the sizes and strides of `out` were.
void check_out(const Row& row, Device device = kHost);
/// A capture (autograd/graph/captured.h) of op and of its gradients, replayed with other values in
/// the inputs. It gives the eager bits of these; or the host reads a value, which is refused.
void check_captured(const Row& row, Device device = kHost);
/// The first sample with a 0-dim operand in each place except an index, and in several: values,
/// derivatives, strides, in-place and out forms, captures. A row may refuse one. One may give
/// another shape, which is printed. Otherwise the result is its value repeated.
void check_scalars(const Row& row);
/// The same on a GPU, also where 0-dim operands stay on the host.
void check_scalars(const Row& row, Device device);

}  // namespace op_table
}  // namespace ramet
