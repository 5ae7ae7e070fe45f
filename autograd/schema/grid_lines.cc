// Samples of images at the places of a grid: grid_sampler and affine_grid_generator. They are made
// of other operations, which have their gradients.
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

constexpr const char* kOp = "grid_sampler";
enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

// From -1 ... 1 to places between the elements of a dimension.
Tensor places(const Tensor& grid, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  if (align_corners) return mul(add(grid, 1), (n - 1) / 2);
  return div(sub(mul(add(grid, 1), n), 1), 2);
}

// At the first and last element, and outside of them, the place does not depend on x. NaN is at the
// first one.
Tensor clipped(const Tensor& x, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  return masked_fill(masked_fill(x, ge(x, last), last), logical_not(gt(x, 0)), 0);
}

// Mirrored at two places, which are given doubled.
Tensor reflected(const Tensor& x, int64_t low2, int64_t high2) {
  if (low2 == high2) return zeros_like(x);
  const double low = static_cast<double>(low2) / 2, span = static_cast<double>(high2 - low2) / 2;
  const Tensor distance = abs(sub(x, low));
  const Tensor rest = fmod(distance, span);
  const Tensor odd = eq(remainder(floor(div(distance.detach(), span)), 2), 1);
  return where(odd, add(neg(rest), span + low), add(rest, low));
}

Tensor padded(const Tensor& x, int64_t size, int64_t padding, bool align_corners) {
  if (padding == kZeros) return x;
  if (padding == kBorder) return clipped(x, size);
  return clipped(align_corners ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1),
                 size);
}

// The weight of the element that is k - 1 after the one before the place; t is the rest of the
// place (Keys 1981, with a = -0.75).
Tensor cubic(const Tensor& t, int k) {
  constexpr double a = -0.75;
  const Tensor d = k == 0 ? add(t, 1) : k == 1 ? t : k == 2 ? rsub(t, 1) : rsub(t, 2);
  if (k == 1 || k == 2) return add(mul(mul(sub(mul(d, a + 2), a + 3), d), d), 1);
  return sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
}

// What each of `count` elements along a dimension adds to a sample.
struct Along {
  std::vector<Tensor> index, weight;  // both may have places outside; without weights all are 1
};
Along along(const Tensor& grid, int64_t size, int64_t mode, int64_t padding, bool align_corners) {
  const Tensor raw = places(grid, size, align_corners);
  Along made;
  if (mode == kBicubic) {
    const Tensor first = floor(raw.detach()), t = sub(raw, first);
    for (int k = 0; k < 4; ++k) {
      made.index.push_back(padded(add(first, k - 1), size, padding, align_corners));
      made.weight.push_back(cubic(t, k));
    }
    return made;
  }
  const Tensor x = padded(raw, size, padding, align_corners);
  if (mode == kNearest) {
    made.index.push_back(round(x.detach()));
    return made;
  }
  const Tensor first = floor(x.detach());
  made.index = {first, add(first, 1)};
  made.weight = {sub(add(first, 1), x), sub(x, first)};
  return made;
}

void check(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, int64_t dims) {
  RAMET_CHECK((dims == 0 && (input.dim() == 4 || input.dim() == 5)) || input.dim() == dims + 2, kOp,
              "input: got the size ", input.sizes(), ", expected ",
              dims == 0   ? "4 or 5 dimensions"
              : dims == 2 ? "4 dimensions"
                          : "5 dimensions");
  RAMET_CHECK(grid.dim() == input.dim() && grid.size(0) == input.size(0) &&
                  grid.size(-1) == input.dim() - 2,
              kOp, "grid: got the size ", grid.sizes(), ", expected ", input.dim(),
              " dimensions, the first of ", input.size(0), " and the last of ", input.dim() - 2);
  RAMET_CHECK(input.scalar_type() == grid.scalar_type() && input.is_floating_point(), kOp,
              "got an input of ", input.scalar_type(), " and a grid of ", grid.scalar_type(),
              ", expected one floating-point dtype");
  RAMET_CHECK(input.device() == grid.device(), kOp, "got an input on ", input.device(),
              " and a grid on ", grid.device(), ", expected one device");
  for (int64_t d = 2; d < input.dim(); ++d)
    RAMET_CHECK(input.size(d) > 0, kOp, "input: got the size ", input.sizes(),
                ", expected elements in dimension ", d);
  RAMET_CHECK(mode >= kBilinear && mode <= kBicubic && (mode != kBicubic || input.dim() == 4), kOp,
              "interpolation_mode: got ", mode,
              ", expected 0 (bilinear), 1 (nearest) or, in 4 "
              "dimensions, 2 (bicubic)");
  RAMET_CHECK(padding >= kZeros && padding <= kReflection, kOp, "padding_mode: got ", padding,
              ", expected 0 (zeros), 1 (border) or 2 (reflection)");
}

// Input [N, C, sizes], grid [N, places, d]: samples [N, C, places]. `dims`: 0 where it may be 2
// or 3.
Tensor sampled(const Call& a, int64_t dims) {
  const Tensor &input = a.tensor(0), &grid = a.tensor(1);
  const int64_t mode = a.integer(2), padding = a.integer(3);
  check(input, grid, mode, padding, dims);
  const auto count = static_cast<size_t>(input.dim() - 2);
  const int64_t batch = input.size(0), channels = input.size(1);
  int64_t elements = 1, samples = 1;
  for (int64_t d = 2; d < input.dim(); ++d) elements *= input.size(d);
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) samples *= grid.size(d);
  std::vector<Along> parts;  // of the last dimension first, as the grid has them
  for (size_t d = 0; d < count; ++d)
    parts.push_back(along(grid.select(-1, static_cast<int64_t>(d)).reshape({batch, samples}),
                          input.size(-1 - static_cast<int64_t>(d)), mode, padding, a.truth(4)));
  const Tensor flat = input.reshape({batch, channels, elements});
  const size_t each = parts[0].index.size();
  size_t corners = 1;
  for (size_t d = 0; d < count; ++d) corners *= each;
  Tensor sum;
  for (size_t corner = 0; corner < corners; ++corner) {
    Tensor inside, place, weight;
    int64_t stride = 1;
    for (size_t d = 0, rest = corner; d < count; ++d, rest /= each) {
      const int64_t size = input.size(-1 - static_cast<int64_t>(d));
      const Tensor& index = parts[d].index[rest % each];
      const Tensor fits = logical_and(ge(index, 0), le(index, size - 1));
      // What is no number is outside, too, and has no place.
      const Tensor at = mul(masked_fill(index, logical_not(fits), 0).to(kLong), stride);
      inside = inside.defined() ? logical_and(inside, fits) : fits;
      place = place.defined() ? add(place, at) : at;
      if (!parts[d].weight.empty()) {
        const Tensor& w = parts[d].weight[rest % each];
        weight = weight.defined() ? mul(weight, w) : w;
      }
      stride *= size;
    }
    const Tensor outside = logical_not(inside);
    Tensor value = gather(flat, 2, place.unsqueeze(1).expand({batch, channels, samples}));
    value = masked_fill(value, outside.unsqueeze(1), 0);
    if (weight.defined()) value = mul(value, weight.unsqueeze(1));
    sum = sum.defined() ? add(sum, value) : value;
  }
  std::vector<int64_t> sizes{batch, channels};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return sum.reshape(sizes);
}

// The grid of an affine map: theta [N, d, d + 1] times (x, y, ..., 1) at each place of `size`.
Tensor affine(const Call& a) {
  constexpr const char* kName = "affine_grid_generator";
  const Tensor& theta = a.tensor(0);
  const std::vector<int64_t> size = a.integers(1).vec();
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  RAMET_CHECK(dims == 2 || dims == 3, kName, "size: got ", a.integers(1),
              ", expected 4 or 5 numbers");
  const std::vector<int64_t> expected{size[0], dims, dims + 1};
  RAMET_CHECK(theta.sizes() == IntArrayRef(expected), kName, "theta: got the size ", theta.sizes(),
              ", expected ", IntArrayRef(expected));
  std::vector<int64_t> places(size.begin() + 2, size.end());
  std::vector<Tensor> columns;
  for (int64_t d = dims - 1; d >= 0; --d) {
    const int64_t steps = places[static_cast<size_t>(d)];
    RAMET_CHECK(steps > 0, kName, "size: got ", a.integers(1), ", expected positive numbers");
    const TensorOptions options = theta.options().requires_grad(false);
    Tensor line = steps == 1 ? zeros({1}, options) : linspace(-1, 1, steps, options);
    if (!a.truth(2)) line = mul(line, static_cast<double>(steps - 1) / static_cast<double>(steps));
    std::vector<int64_t> shape(static_cast<size_t>(dims), 1);
    shape[static_cast<size_t>(d)] = steps;
    columns.push_back(line.view(shape).expand(places));
  }
  columns.push_back(ones_like(columns[0]));
  const Tensor base = stack(columns, -1).reshape({1, -1, dims + 1});
  places.insert(places.begin(), size[0]);
  places.push_back(dims);
  return matmul(base, theta.transpose(1, 2)).reshape(places);
}

#define RAMET_SAMPLER(name, dims)                                   \
  RAMET_LINE("aten::" name                                          \
             "(Tensor input, Tensor grid, int interpolation_mode, " \
             "int padding_mode, bool align_corners) -> Tensor",     \
             sampled(a, dims))

const Line kGrids[] = {
    RAMET_SAMPLER("grid_sampler", 0),
    RAMET_SAMPLER("grid_sampler_2d", 2),
    RAMET_SAMPLER("grid_sampler_3d", 3),
    RAMET_LINE(
        "aten::affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
        affine(a)),
};

}  // namespace

Lines lines_of_grids() { return kGrids; }

}  // namespace ramet::script
