#include "tools/see/kernel_costs.h"

#include <cstring>
#include <string>
#include <unordered_set>

#include "kernels/copy/copy.h"
#include "kernels/image/conv2d.h"
#include "kernels/matrix/matmul.h"
#include "kernels/pointwise/pointwise.h"

namespace ramet {
namespace see {
namespace {

// By name: a table of the kernels themselves would link all of them.
bool is_pointwise(const std::string& name, const char* end) {
  static const std::unordered_set<std::string> all = {
#define RAMET_X(name, Row) #name,
      RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X
  };
  const size_t tail = std::strlen(end);
  return name.size() > tail && name.ends_with(end) &&
         all.count(name.substr(0, name.size() - tail)) != 0;
}
bool is_one_flop(const std::string& name) {
  return name == "add" || name == "sub" || name == "mul" || name == "div";
}
int64_t size_of(ScalarType t) { return static_cast<int64_t>(item_size(t)); }

template <class Args> const Args& args_of(const KernelCall& call) {
  return *static_cast<const Args*>(call.args);
}

}  // namespace

KernelCost cost_of(const KernelCall& call) {
  const std::string name = call.name;
  if (name == "matmul") {
    const auto& a = args_of<kernels::MatmulArgs>(call);
    // A matrix that a whole batch shares is read once.
    const int64_t of_a = a.m * a.k * (a.a_batch ? a.batch : 1),
                  of_b = a.k * a.n * (a.b_batch ? a.batch : 1), of_c = a.batch * a.m * a.n;
    return {(of_a + of_b + (a.bias ? a.n : 0)) * size_of(a.dtype) +
                of_c * size_of(kernels::c_type_of(a)),
            2 * a.batch * a.m * a.n * a.k};
  }
  if (name == "conv2d_forward" || name == "conv2d_backward_input" ||
      name == "conv2d_backward_weight") {
    const auto& a = args_of<kernels::Conv2dArgs>(call);
    const kernels::Conv2dShape& s = a.shape;
    const int64_t taps = s.ci / s.groups * s.kh * s.kw;
    return {
        (s.n * s.ci * s.h * s.w + s.co * taps + s.n * s.co * s.oh * s.ow + (a.bias ? s.co : 0)) *
            size_of(a.dtype),
        2 * s.n * s.co * s.oh * s.ow * taps};
  }
  if (name == "copy_dense") {
    const auto& a = args_of<kernels::CopyDenseArgs>(call);
    return {a.n * (size_of(a.in_type) + size_of(a.out_type)), -1};
  }
  if (is_pointwise(name, "")) {
    const auto& a = args_of<kernels::PointwiseArgs>(call);
    const int64_t each = (a.a ? size_of(a.a_type) : 0) + (a.b ? size_of(a.b_type) : 0) +
                         (a.c ? size_of(a.c_type) : 0) + size_of(a.out_type);
    return {a.n * each, is_one_flop(name) ? a.n : -1};
  }
  if (is_pointwise(name, "_strided")) {
    const auto& a = args_of<kernels::PointwiseStridedArgs>(call);
    int64_t n = 1, bytes = 0;
    for (int d = 0; d < a.rank; ++d) n *= a.sizes[d];
    for (int o = 0; o < 4; ++o) {
      if (!a.data[o]) continue;
      int64_t own = size_of(a.type[o]);
      for (int d = 0; d < a.rank; ++d)
        if (a.strides[o][d] != 0) own *= a.sizes[d];  // broadcast: read once
      bytes += own;
    }
    return {bytes, is_one_flop(name.substr(0, name.size() - 8)) ? n : -1};
  }
  return {};
}

}  // namespace see
}  // namespace ramet
