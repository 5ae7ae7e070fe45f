// Lab 2: gradients of gradients. task.md says what to do.
#include "ramet.h"

namespace lab {
using namespace ramet;
using autograd::AutogradContext;
using autograd::tensor_list;

struct Gauss : autograd::Function<Gauss> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor y = exp(x * x / -2);
    // HOLE 1: keep what backward() needs.
    ctx->save_for_backward({x, y});
    // END 1
    return y;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    // HOLE 2: the gradient of x, by operations that can be differentiated themselves.
    //| (void)ctx;
    //| return {grads[0]};
    const tensor_list saved = ctx->get_saved_variables();
    return {grads[0] * -saved[0] * saved[1]};
    // END 2
  }
};

Tensor gauss(const Tensor& x) { return Gauss::apply(x); }

// x is a leaf that requires a gradient. Its own grad() stays as it is.
Tensor curvature(const Tensor& x) {
  // HOLE 3: differentiate gauss(x) twice, with autograd::grad().
  //| return zeros_like(x);
  const Tensor y = gauss(x);
  const Tensor slope = autograd::grad({y.sum()}, {x}, {}, /*retain_graph=*/true,
                                      /*create_graph=*/true)[0];
  return autograd::grad({slope.sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  // END 3
}

// net maps rows of x to one number each. The result is differentiated by the parameters of net, so
// it has a history; no grad() changes here, neither of x nor of a parameter.
Tensor penalty(nn::Sequential net, const Tensor& x) {
  // HOLE 4: the mean of (length of each row's gradient - 1) squared.
  //| return net->forward(x).sum() * 0;
  const Tensor input = x.detach().requires_grad_();
  const Tensor slope = autograd::grad({net->forward(input).sum()}, {input}, {},
                                      /*retain_graph=*/true, /*create_graph=*/true)[0];
  return (slope.norm(2, 1) - 1).pow(2).mean();
  // END 4
}

}  // namespace lab
