// Convolutions, by both methods of the library. The rows of one shape show what the estimate in
// kernels/image/conv2d.cu should choose. Where a table of measurements is set
// (runtime/cuda/measured.h; gpu_check sets one), "forward" is the quicker one.
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "runtime/cuda/blas.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

// 3 x 3 pixels, padded by one: `size` x `size` pixels come in and go out.
struct Layer {
  int64_t images, in, size, out;
};

// While it lives, all products are the library's own.
class Implicit {
 public:
  explicit Implicit(bool implicit) {
    if (implicit) cuda::set_blas_enabled(false);
  }
  ~Implicit() { cuda::set_blas_enabled(before_); }
  Implicit(const Implicit&) = delete;
  Implicit& operator=(const Implicit&) = delete;

 private:
  const bool before_ = cuda::blas_enabled();
};

Work convolution(const Layer& l, bool implicit, bool backward) {
  const Tensor x = filled({l.images, l.in, l.size, l.size}, kFloat, 1, 1).requires_grad_(backward),
               w = filled({l.out, l.in, 3, 3}, kFloat, .05, 2).requires_grad_(backward),
               b = filled({l.out}, kFloat, .1, 3).requires_grad_(backward);
  if (!backward) {
    const auto compute = [=] {
      const NoGradGuard off;
      const Implicit way(implicit);
      return conv2d(x, w, b, 1, 1);
    };
    return {[=] { compute(); }, [=] { return some_of(compute().contiguous()); }};
  }
  const Tensor y = conv2d(x, w, b, 1, 1),
               gy = filled({l.images, l.out, l.size, l.size}, kFloat, 1, 4);
  const auto compute = [=] { return autograd::grad({y}, {x, w, b}, {gy}, /*retain_graph=*/true); };
  return {[=] { compute(); },
          [=] {
            std::vector<double> all;
            for (const Tensor& g : compute())
              for (double v : some_of(g.contiguous())) all.push_back(v);
            return all;
          }};
}

}  // namespace

void add_convolution_rows(std::vector<Row>& rows, bool tiny) {
  const std::vector<Layer> layers =
      tiny ? std::vector<Layer>{{2, 4, 6, 8}}
           : std::vector<Layer>{
                 {128, 16, 14, 32}, {128, 64, 28, 64}, {64, 256, 14, 256}, {64, 512, 7, 512}};
  for (const Layer& l : layers) {
    const auto add = [&](const std::string& way, double products, bool implicit, bool backward) {
      Row r;
      r.name = "conv2d." + way + "." + std::to_string(l.in) + "x" + std::to_string(l.size) + "x" +
               std::to_string(l.out);
      r.anchor = "routes";
      r.shape = {{"images", l.images}, {"in", l.in}, {"size", l.size}, {"out", l.out}};
      r.limit = Limit::Product, r.tolerance = 1e-4;
      r.work = products * 2 * static_cast<double>(l.images * l.size * l.size) *
               static_cast<double>(9 * l.in * l.out);
      r.make = [=] { return convolution(l, implicit, backward); };
      rows.push_back(std::move(r));
    };
    add("forward", 1, false, false);
    add("implicit", 1, true, false);
    add("backward", 2, false, true);
  }
}

}  // namespace ramet::gpu_bench
