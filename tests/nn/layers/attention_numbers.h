// Numbers of attention from PyTorch 2.15 in float64, of options that tests/nn/goldens does not
// have. They are results of modules with the parameters sin(1.1 i + .2 + k) / 2, k the parameter's
// number.
#pragma once
#include <cmath>
#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/nn/support.h"

namespace ramet::nn {

inline Tensor weights_of(const Tensor& t) {
  return sines(t.numel(), .7, std::acos(0.)).view(t.sizes());
}
inline double weighed(const Tensor& t) { return (t * weights_of(t)).sum().item<double>(); }
template <class M> M fill(M module) {
  module->to(kDouble);
  const NoGradGuard off;
  double k = 0;
  for (const Tensor& p : module->parameters())
    p.copy_(sines(p.numel(), 1.1, .2 + k++).view(p.sizes()) / 2);
  return module;
}
inline Tensor input(IntArrayRef sizes, double start = 0) {
  return sines(zeros(sizes).numel(), .9, start).view(sizes).requires_grad_(true);
}
inline Tensor added(IntArrayRef sizes) { return sines(zeros(sizes).numel(), 1.7, .4).view(sizes); }
// Every row sees the first key.
inline Tensor excluded(IntArrayRef sizes) {
  Tensor m = added(sizes).gt(.6);
  m.select(-1, 0).fill_(false);
  return m;
}

inline const std::map<std::string, std::vector<double>>& numbers() {
  static const std::map<std::string, std::vector<double>> all = {
      {"causal, batch first",
       {-0.162272582522054, -3.03275980066567, -0.382778916986465, -0.179477783370451,
        0.920626270218392, -0.0591710959172004}},
      {"kdim and vdim",
       {1.5396099601564, 0.0566337212900057, -0.895457494276944, 0.541204563468461,
        0.196989641796443, 1.96140844637561, -0.824150485329902, -5.48373423817693,
        0.540292323623657, -2.76745817418294, -0.0591710959172002}},
      {"three, without bias",
       {-0.999277741149092, 4.46412352368985, 0.433294128728854, -1.46673399984156,
        1.95831519991656, -0.992698274953539}},
      {"no batch",
       {1.76870451329756, 0.241897229943583, 0.828691435795993, 0.586511666105203,
        -4.97893164794172, -0.105470879891524, 2.79841097992411, -0.0306693327353663}},
      {"encoder layer, norm first", {0.569764348289265, 18.4870557629062, 0.105586055346337}},
      {"decoder layer",
       {0.133276387828991, 0.189948826259376, 0.0884095155202049, -0.444948013670389}},
      {"decoder layer, norm first",
       {0.70616422524123, 18.5698019644205, -0.28385244071987, 0.930130475335072}},
      {"transformer",
       {-0.0352717978777957, 0.00107115559207152, -0.0455460599017155, -0.0379862200993361}},
      {"transformer, norm first",
       {-0.0883390669854941, 0.00120466019196849, -0.146163048063044, -1.31900330392226}},
      {"encoder", {-0.0221203767561744, 0.398348348509024, -0.257548038976755}},
  };
  return all;
}

// Weighed sums of the outputs, of the inputs' gradients and of the parameters', each or in one sum.
template <class M>
void expect_numbers(const char* name, const std::vector<Tensor>& outputs,
                    const std::vector<Tensor>& inputs, const M& module, bool each = true) {
  SCOPED_TRACE(name);
  std::vector<double> got;
  Tensor loss = zeros({}, TensorOptions(kDouble));
  for (const Tensor& y : outputs) {
    got.push_back(weighed(y.detach()));
    loss = loss + (y * weights_of(y)).sum();
  }
  loss.backward();
  for (const Tensor& x : inputs) got.push_back(weighed(x.grad()));
  double k = 0, sum = 0;
  for (const Tensor& p : module->parameters()) {
    if (each) got.push_back(weighed(p.grad()));
    else sum += std::cos(k++) * weighed(p.grad());
  }
  if (!each) got.push_back(sum);
  const std::vector<double>& want = numbers().at(name);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << "at " << i;
}

}  // namespace ramet::nn
