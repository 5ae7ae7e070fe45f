// Attention as a public function. Values of many shapes: tests/kernels; on a GPU:
// tests/autograd/gpu.
#include "autograd/ops/layers/attention.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

// ((i * step + 3) % 11 - 5) / 4
Tensor filled(IntArrayRef sizes, int64_t step) {
  Tensor t = zeros(sizes, kDouble);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data_ptr<double>()[i] = static_cast<double>((i * step + 3) % 11 - 5) / 4;
  return t;
}
struct Operands {
  Tensor q = filled({1, 2, 3, 4}, 3), k = filled({1, 2, 4, 4}, 5), v = filled({1, 2, 4, 4}, 7);
};
Tensor mask_of(std::initializer_list<double> bits) { return constant(bits).view({3, 4}).to(kBool); }

using Function = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);
using Values = std::vector<double>;
void expect_step(Function f, const Values& y, const Values& dq, const Values& dk,
                 const Values& dv) {
  const Operands o;
  const In in = {o.q.requires_grad_(), o.k.requires_grad_(), o.v.requires_grad_()};
  const Tensor out = f(in[0], in[1], in[2]);
  expect_values(out, y, 1e-8);
  out.backward(filled(out.sizes(), 4));
  expect_values(in[0].grad(), dq, 1e-8);
  expect_values(in[1].grad(), dk, 1e-8);
  expect_values(in[2].grad(), dv, 1e-8);
}

TEST(Attention, AsPyTorch) {
  expect_step(
      [](const Tensor& q, const Tensor& k, const Tensor& v) {
        return scaled_dot_product_attention(q, k, v);
      },
      {0.446590369,  -0.14399485, -0.221364399, 0.196590369,  0.362657417,  -0.23298111,
       -0.133812665, 0.112657417, 0.400303877,  0.329614735,  -0.395681501, 0.150303877,
       -0.5,         -0.125,      0.25,         0.347506819,  -0.571418217, -0.0683576228,
       0.178581783,  0.414381866, -0.222177032, -0.592440251, 0.527822968,  -0.10850696},
      {-0.241678057, 0.0630526503,  -0.241678057, 0.0630526503, 0.175398549,   -0.28175686,
       0.175398549,  -0.28175686,   0.184348038,  0.242099082,  0.184348038,   0.242099082,
       0.07072826,   -0.0361926215, -0.264605615, 0.07072826,   -0.0749625525, -0.145843128,
       0.0918462781, -0.0749625525, -0.149762521, 0.384765956,  0.023414917,   -0.149762521},
      {0.0245690713,  0.1792593,    -0.670904098, -0.0785577475, -0.0384150719, -0.218925389,
       0.547666876,   0.0819251394, 0.0809487093, 0.0129909668,  -0.266156014,  0.126253871,
       -0.0671027088, 0.0266751223, 0.389393235,  -0.129621263,  -0.123173036,  0.314066254,
       0.0389756091,  -0.058313578, 0.0291780598, -0.424510479,  0.0877580777,  0.052610067,
       0.0469207855,  0.235278638,  -0.171693153, -0.0405247901, 0.0470741908,  -0.124834412,
       0.0449594667,  0.0462283012},
      {-0.217607065,  0.0118813206, 0.236316399,  -0.0591446003, -0.313248501,  0.0658171409,
       0.344290453,   -0.134675231, 0.0571030125, -0.206973556,  -0.29451213,   0.265875982,
       -0.0262474467, -0.120724906, -0.286094721, 0.17794385,    0.099871855,   0.638227362,
       -0.227517327,  0.303834027,  -0.216774238, -0.333562158,  0.28348667,    0.0284054867,
       -0.110553164,  -0.299471353, 0.170447435,  0.116593993,   -0.0225444523, -0.0051938509,
       0.0235832224,  0.0511664932});
  expect_step([](const Tensor& q, const Tensor& k,
                 const Tensor& v) { return scaled_dot_product_attention(q, k, v, {}, 0, true); },
              {-0.5,
               1.25,
               0.25,
               -0.75,
               0.179892772,
               0.68342269,
               -0.31657731,
               -0.070107228,
               0.275282492,
               0.341328975,
               -0.343548287,
               0.0252824921,
               0,
               -1,
               0.75,
               -0.25,
               -1.01608415,
               0.219300977,
               -0.266084147,
               0.969300977,
               -0.138860464,
               -0.736235844,
               0.611139536,
               0.0137641563},
              {0,
               0,
               0,
               0,
               -0.240071309,
               -0.240071309,
               -0.240071309,
               -0.240071309,
               0.357128462,
               0.15021789,
               0.357128462,
               0.15021789,
               0,
               0,
               0,
               0,
               0.0427820742,
               -0.192519334,
               0.0427820742,
               0.0427820742,
               -0.0786421191,
               0.383345274,
               -0.0786421191,
               -0.0786421191},
              {0.120035655,
               0.0416856817,
               -1.06977326,
               0.17226897,
               -0.120035655,
               -0.0981158376,
               1.16382352,
               -0.134648866,
               0,
               0.0564301559,
               -0.0940502598,
               -0.0376201039,
               0,
               0,
               0,
               0,
               -0.0832144876,
               0.316949455,
               0.0198245966,
               -0.0419988539,
               0.0912478706,
               -0.330338427,
               -0.0251801853,
               0.0446766482,
               -0.00803338302,
               0.0133889717,
               0.00535558868,
               -0.00267779434,
               0,
               0,
               0,
               0},
              {-0.380686336,
               0.0501751646,
               -0.765433417,
               0.102911519,
               -0.0333710992,
               -0.328822686,
               0.622195809,
               0.204383525,
               -0.085942565,
               0.0286475217,
               0.143237608,
               -0.0572950433,
               0,
               0,
               0,
               0,
               0.482114353,
               -0.403764826,
               -0.401361388,
               0.948144558,
               -0.77626508,
               0.183011191,
               0.739662841,
               -0.536446012,
               0.0441507269,
               0.220753635,
               -0.0883014539,
               0.0883014539,
               0,
               0,
               0,
               0});
  expect_step(
      [](const Tensor& q, const Tensor& k, const Tensor& v) {
        return scaled_dot_product_attention(q, k, v, mask_of({1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1}));
      },
      {0.342369077,    -0.17111279,  -0.0747272528,
       0.0923690767,   0.0421329461, -0.957867054,
       0.149440465,    -0.207867054, 1.25,
       0.25,           -0.75,        1,
       -0.00188592352, -0.540095064, 0.748114076,
       -0.251885924,   -0.593264751, -0.0472793739,
       0.156735249,    0.702720626,  -1,
       0.75,           -0.25,        -1.25},
      {-0.184632829,
       0.0431608325,
       -0.184632829,
       0.0431608325,
       -0.188881554,
       0.0419736787,
       -0.188881554,
       0.0419736787,
       0,
       0,
       0,
       0,
       0.158027649,
       0.0248547628,
       -0.444778648,
       0.158027649,
       -0.0576876756,
       -0.0576876756,
       -0.0576876756,
       -0.0576876756,
       0,
       0,
       0,
       0},
      {-0.0414170293, 0.0207085147, 0.0828340587,  -0.0828340587, -0.0209868393, 0.0419736787,
       0.104934197,   -0.062960518, 0.102077095,   -0.0825188064, -0.267114708,  0.225141029,
       -0.0396732261, 0.0198366131, 0.0793464523,  -0.0793464523, 0.012106626,   0.048426504,
       -0.048426504,  -0.012106626, -0.0576876756, -0.144219189,  0.0865315135,  0,
       0.100381622,   0.314994975,  -0.257307299,  -0.0426939464, -0.0548005724, -0.21920229,
       0.21920229,    0.0548005724},
      {-0.0884578424,
       0.0884578424,
       -0.221144606,
       -0.0442289212,
       0.175279768,
       -0.233706357,
       0,
       0.233706357,
       0.375377407,
       -0.566950818,
       -0.498357062,
       0.666622231,
       -0.962199333,
       0.462199333,
       0.719501668,
       -0.606099666,
       0.0839619745,
       -0.209904936,
       -0.0419809873,
       0.125942962,
       -0.562176501,
       0,
       0.562176501,
       -0.421632376,
       -0.105747448,
       -0.830190127,
       0.271785474,
       0.169746452,
       0.333961975,
       1.04009506,
       -0.541980987,
       0.625942962});
  expect_step(
      [](const Tensor& q, const Tensor& k, const Tensor& v) {
        return scaled_dot_product_attention(q, k, v, filled({3, 4}, 2), 0, false, 0.2);
      },
      {0.639977376,  -0.14538787,  -0.337892142, 0.389977376,  0.607564599,  -0.177383074,
       -0.305302884, 0.357564599,  0.492592748,  0.373069084,  -0.532962094, 0.242592748,
       -0.526855055, 0.0196531646, 0.223144945,  -0.17470543,  -0.546313522, 0.0346436581,
       0.203686478,  -0.15710207,  -0.576250018, -0.246962871, 0.173749982,  0.326289474},
      {-0.072436504, 0.00840902141, -0.072436504, 0.00840902141, 0.0308967036,  -0.080349008,
       0.0308967036, -0.080349008,  0.0787539807, 0.0874334842,  0.0787539807,  0.0874334842,
       0.090083346,  0.0331983642,  -0.257004457, 0.090083346,   -0.0515083019, -0.0545105502,
       0.102876492,  -0.0515083019, -0.066914136, 0.28738799,    -0.0469771296, -0.066914136},
      {0.00677678164, 0.0939918507,  -0.248232431,  -0.0513665978, -0.0113627216, -0.104501613,
       0.223119343,   0.0507298729,  0.0341605808,  -0.0179665968, -0.104179579,  0.0689120326,
       -0.0295746409, 0.0284763593,  0.129292668,   -0.0682753077, -0.0909106273, 0.183096527,
       0.0429143255,  -0.0373806462, 0.0769373129,  -0.212612893,  -0.0413348616, 0.0296284431,
       0.0120194232,  0.094617482,   -0.0820633565, -0.0256136887, 0.00195389122, -0.065101116,
       0.0804838926,  0.0333658918},
      {-0.220503776, 0.0408669577, 0.302655264,   -0.101398011, -0.413803087,  0.092202455,
       0.564318757,  -0.205066206, 0.065394786,   -0.161760044, -0.324330412,  0.226626126,
       0.0689120763, -0.221309369, -0.542643609,  0.329838091,  0.0772181076,  0.490481857,
       -0.175314479, 0.233212766,  -0.0181824606, 0.250177212,  -0.0318529818, 0.199444864,
       -0.154352186, -0.391745005, 0.232701187,   0.0344938327, -0.154683461,  -0.348914063,
       0.224466273,  0.0328485374});
}

TEST(Attention, RowsThatSeeNothing) {
  const Operands o;
  const Tensor q = o.q.requires_grad_(),
               y = scaled_dot_product_attention(q, o.k, o.v,
                                                mask_of({0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1}));
  expect_values(y[0][0][0], {0, 0, 0, 0}, 0);
  expect_values(y[0][0][1], {0.179892772, 0.68342269, -0.31657731, -0.070107228}, 1e-8);
  y.sum().backward();
  expect_values(q.grad()[0][0][0], {0, 0, 0, 0}, 0);
}

TEST(Attention, FewerHeadsOfKeys) {
  const Operands o;
  const Tensor k = o.k.slice(1, 0, 1), v = o.v.slice(1, 0, 1);
  expect_values(
      scaled_dot_product_attention(o.q, k, v, {}, 0, false, {}, true),
      {0.446590369,  -0.14399485,   -0.221364399, 0.196590369,  0.362657417,  -0.23298111,
       -0.133812665, 0.112657417,   0.400303877,  0.329614735,  -0.395681501, 0.150303877,
       0.315710459,  0.329302933,   -0.309289541, 0.0657104593, 0.231921643,  0.312958753,
       -0.222092979, -0.0180783566, 0.488190153,  -0.103381113, -0.265339765, 0.238190153},
      1e-8);
  EXPECT_NE(error_of([&] {
              scaled_dot_product_attention(o.q, filled({1, 3, 4, 4}, 1), filled({1, 3, 4, 4}, 1),
                                           {}, 0, false, {}, true);
            }).find("[scaled_dot_product_attention] enable_gqa: got key"),
            std::string::npos);
}

// Without the matrix of scores and with it: the same function.
TEST(Attention, BothWays) {
  for (bool causal : {false, true}) {
    const In in = {varied_leaf({2, 2, 70, 8}, 1), varied_leaf({2, 2, 66, 8}, 2),
                   varied_leaf({2, 2, 66, 8}, 3)};
    const Tensor seen =
        causal ? arange(66, kLong).le(arange(70, kLong).unsqueeze(1)) : ones({70, 66}, kBool);
    const Tensor fused = scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, causal),
                 composed = scaled_dot_product_attention(in[0], in[1], in[2], seen),
                 g = varied(fused.sizes(), 4);
    expect_values(fused, values(composed), 1e-13);
    const In a = autograd::grad({fused}, in, {g}), b = autograd::grad({composed}, in, {g});
    for (size_t i = 0; i < 3; ++i) expect_values(a[i], values(b[i]), 1e-12);
  }
}

// The backward's memory has a place for each row of each head of each sample (under ASan: a place
// too few is a fault).
TEST(Attention, ManyHeads) {
  const Tensor q = filled({1, 1, 8, 4}, 3), k = filled({1, 1, 4, 4}, 5);
  const auto gradients = [](const Tensor& q, const Tensor& k) {
    const In in = {q.clone().requires_grad_(), k.clone().requires_grad_()};
    scaled_dot_product_attention(in[0], in[1], in[1]).sum().backward();
    return In{in[0].grad(), in[1].grad()};
  };
  const In one = gradients(q, k),
           all = gradients(q.repeat({512, 64, 1, 1}), k.repeat({512, 64, 1, 1}));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(all[i].equal(one[i].expand_as(all[i]))) << i;
}

TEST(Attention, Strides) {  // [batch, rows, heads, columns], as a projection leaves them
  const Tensor packed = varied_leaf({2, 5, 3, 2, 4});
  const auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2); };
  const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true),
               want = scaled_dot_product_attention(part(0).contiguous(), part(1).contiguous(),
                                                   part(2).contiguous(), {}, 0, true);
  expect_values(y, values(want), 0);
  const Tensor columns = varied({4, 6}).t(), rows = columns.contiguous();
  expect_values(scaled_dot_product_attention(columns, columns, columns),
                values(scaled_dot_product_attention(rows, rows, rows)), 0);
}

TEST(Attention, Derivatives) {
  for (bool causal : {false, true})
    expect_derivatives(
        [=](const In& v) { return scaled_dot_product_attention(v[0], v[1], v[2], {}, 0, causal); },
        {varied_leaf({2, 3, 4}, 1), varied_leaf({2, 5, 4}, 2), varied_leaf({2, 5, 4}, 3)});
  EXPECT_EQ(scaled_dot_product_attention(varied_leaf({2, 3}), varied({2, 3}), varied({2, 3}))
                .grad_fn()
                ->name(),
            "ScaledDotProductAttentionBackward0");
}

TEST(Attention, OnlyWhatIsAskedFor) {
  const Tensor q = varied({3, 4}), v = varied_leaf({5, 4}, 2), k = varied({5, 4}, 3);
  scaled_dot_product_attention(q, k, v).sum().backward();
  EXPECT_FALSE(q.grad().defined() || k.grad().defined());
  // d/dv of the sum: each key's probabilities.
  expect_values(v.grad().select(1, 0), values(softmax(q.matmul(k.t()).mul(0.5), 1).sum(0)), 1e-13);
}

TEST(Attention, Dropout) {
  const Tensor q = varied({64, 8}), k = varied({64, 8}, 2), v = ones({64, 8}, kDouble);
  manual_seed(3);
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.25);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.1);
  EXPECT_GT(y.std().item<double>(), 0.01);
  expect_values(scaled_dot_product_attention(q, k, v, {}, 1), std::vector<double>(512, 0), 0);
}

TEST(Attention, Errors) {
  const Operands o;
  const Tensor bits = mask_of({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const auto expect = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    EXPECT_NE(text.find("[scaled_dot_product_attention] " + part), std::string::npos) << text;
  };
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v,
                    const std::optional<Tensor>& mask = {}, double p = 0, bool causal = false) {
    return [=] { scaled_dot_product_attention(q, k, v, mask, p, causal); };
  };
  expect(f(o.q.to(kFloat), o.k, o.v),
         "Expected query, key, and value to have the same dtype, but got query.dtype: ");
  expect(f(o.q[0][0][0], o.k, o.v),
         "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1 "
         "key.dim: 4 and value.dim: 4 instead.");
  expect(f(o.q, o.k, o.v, bits, 0, true),
         "Explicit attn_mask should not be set when is_causal=True");
  expect(f(o.q, o.k, o.v, bits.to(kLong)),
         "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
         "attn_mask.dtype: ");
  expect(f(o.q, o.k, o.v, {}, 1.5), "dropout probability has to be between 0 and 1, but got 1.5");
  expect(f(o.q, o.k.slice(-1, 0, 3), o.v), "key: got ");
  expect(f(o.q, o.k, o.v.slice(-2, 0, 3)), "value: got ");
  expect(f(o.q.to(kLong), o.k.to(kLong), o.v.to(kLong)), "not implemented for ");
  expect(f(Tensor(), o.k, o.v), "undefined tensor");
}

}  // namespace
}  // namespace ramet
