// Losses with margins, Huber, KLDiv, PoissonNLL and CTC against numbers from PyTorch 2.15 in
// float64, CTC also against the sum over all alignments.
#include "nn/layers/loss/margin_loss.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/ops/loss/ctc_loss.h"
#include "autograd/ops/loss/loss.h"
#include "autograd/ops/loss/margin_loss.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "nn/layers/loss/ctc_loss.h"
#include "nn/module/module_list.h"
#include "runtime/memory/allocator.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

using V = const std::vector<Tensor>&;
enum class Reduction { kNone, kMean, kSum };

template <class Options> Options with(Reduction r) {
  Options options;
  if (r == Reduction::kNone) options.reduction(kNone);
  if (r == Reduction::kSum) options.reduction(kSum);
  return options;  // kMean is the default
}

Tensor signs() { return doubles({1, -1, 1, -1, -1, -1, 1, 1, 1, 1, -1, -1}).view({3, 4}); }
Tensor labels() { return doubles({2, 0, 3}).to(kLong); }
Tensor sets() { return doubles({3, 0, -1, 1, 1, -1, 0, 0, -1, 2, 0, 1}).to(kLong).view({3, 4}); }
Tensor taxicab(const Tensor& a, const Tensor& b) { return a.sub(b).abs().sum(1); }
std::vector<Tensor> operands() {
  return {sines(12).view({3, 4}), sines(12, 0.91, 0.5).view({3, 4}),
          sines(12, 1.7, 0.2).view({3, 4})};
}

struct Row {
  const char* name;
  Tensor (*f)(V x, Reduction r);
  size_t count;                // of operands
  std::vector<double> values;  // without reduction
  double mean, sum;
  std::vector<std::vector<double>> gradients;  // of the values' sum with i / 4 - 1, i from 1 on
};

constexpr int64_t kEach = ramet::Reduction::None;

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
    {"huber", [](V x, Reduction r) { return F::huber_loss(x[0], x[1], with<F::HuberLossFuncOptions>(r)); }, 2, {0.0683195401943969, 0.137981037369572, 0.000181431459685939, 0.527391584501675, 1.34042501868449, 1.36876018942407, 0.542972953538855, 0.0079798268992707, 0.428490882282904, 0.465053678008221, 0.0991950618311072, 0.000260151819677983}, 0.415584279667827, 4.98701135601393, {{0.277235428325271, 0.262660462736184, -0.0047622402775104, 0, 0.25, 0.5, 0.75, -0.126331523376161, -1.15716636968678, -1.44663110399196, -0.779467609150971, 0.0456203305273413}, {-0.277235428325271, -0.262660462736184, 0.0047622402775104, -0, -0.25, -0.5, -0.75, 0.126331523376161, 1.15716636968678, 1.44663110399196, 0.779467609150971, -0.0456203305273413}}},
    {"huber, delta", [](V x, Reduction r) { return F::huber_loss(x[0], x[1], with<F::HuberLossFuncOptions>(r).delta(0.5)); }, 2, {0.0683195401943969, 0.137660462736184, 0.000181431459685939, 0.388695792250838, 0.795212509342243, 0.809380094712037, 0.396486476769427, 0.0079798268992707, 0.337866547874711, 0.35721036799732, 0.0991950618311072, 0.000260151819677983}, 0.283204021990575, 3.3984482638869, {{0.277235428325271, 0.25, -0.0047622402775104, 0, 0.125, 0.25, 0.375, -0.126331523376161, -0.625, -0.75, -0.779467609150971, 0.0456203305273413}, {-0.277235428325271, -0.25, 0.0047622402775104, -0, -0.125, -0.25, -0.375, 0.126331523376161, 0.625, 0.75, 0.779467609150971, -0.0456203305273413}}},
    {"kl_div", [](V x, Reduction r) { return F::kl_div(x[0], x[1].square(), with<F::KLDivFuncOptions>(r)); }, 2, {-0.363186846414171, -0.475244221096163, -0.737008258427134, -0.0451618166033842, -0.95187360099702, -0.927165164069312, -0.304542357386554, -0.493498415466263, -0.0765890655083012, -0.227293386003445, -0.0873376428978885, 0.481758707303348}, -0.350595172297191, -4.20714206756629, {{0.172386635299448, 0.487183304710777, 0.134040721906657, -0, -0.176656042334254, -0.445142045042296, -0.0756468729747684, -0.306596318487746, -1.243170870195, -0.674199339056455, -0.0531821966402381, -1.56435171527588}, {0.41718052735501, -0.505645159809773, 0.137146098025401, -0, 0.145875974396806, 0.0390876223036161, 0.96199870766442, -0.67508848746833, 2.3011636638497, 0.994176949727225, 1.14335477006937, -5.7165285721474}}},
    {"kl_div, log", [](V x, Reduction r) { return F::kl_div(x[0], x[1], with<F::KLDivFuncOptions>(r).log_target(true)); }, 2, {0.597034367069462, 1.40966795602673, -0.0396164330903344, -0.940570116900552, -0.794046805732216, -0.72740384684322, -0.759182318351584, 0.219778669689998, 2.50952950527401, 1.88550330792909, 0.374154406982933, -0.00941966208556838}, 0.310452419164062, 3.72542902996875, {{1.21135972233156, 1.34172073457683, 0.519929051005447, -0, -0.107861879412478, -0.194622041650886, -0.545926657859854, -1.73969777151814, -3.38857052426439, -2.93259451641379, -1.47003911122534, -0.825917916567743}, {-1.65913549763366, -2.04655471259019, -0.510024942732863, 0, -0.0906498220205757, -0.169079881770724, -0.0234600809038338, 1.95947644120814, 6.5254824058569, 5.76084947830743, 2.12480932344547, 0.807078592396606}}},
    {"hinge_embedding", [](V x, Reduction r) { return F::hinge_embedding_loss(x[0], signs(), with<F::HingeEmbeddingLossFuncOptions>(r).margin(0.7)); }, 1, {0.109778300837175, 0.238220824458517, 0.751280405140293, 0, 0, 0, 0.72538438746682, 0.42737988023383, 0.0715315111408437, -0.293998312415568, 1.31973684359496, 1.56159690031074}, 0.409242561730635, 4.91091074076761, {{-0.75, 0.5, -0.25, 0, 0, 0, 0.75, 1, 1.25, 1.5, -1.75, -2}}},
    {"soft_margin", [](V x, Reduction r) { return F::soft_margin_loss(x[0], signs(), with<F::SoftMarginLossFuncOptions>(r)); }, 1, {0.639763683742254, 0.950458252720889, 0.386460403457476, 1.26910775465342, 1.31312689472266, 1.2591430706727, 0.394834426403065, 0.50211726057536, 0.658020883311349, 0.850912023977827, 0.430538799134072, 0.352406659503535}, 0.750574176072884, 9.0068901128746, {{0.354437215094987, -0.306718080535515, 0.0801355927462779, 0, 0.182755581205163, 0.358051398934415, -0.244656305916751, -0.394752165224371, -0.602655929387896, -0.859462054518706, 0.612222283063513, 0.594011630850774}}},
    {"margin_ranking", [](V x, Reduction r) { return F::margin_ranking_loss(x[0], x[1], signs(), with<F::MarginRankingLossFuncOptions>(r).margin(0.2)); }, 2, {0.569647237767028, 0, 0.180951038889958, 1.22739158450168, 2.04042501868449, 2.06876018942407, 0, 0.326331523376161, 1.12573309574942, 1.16442073599464, 0, 0.222810165263671}, 0.743872549137593, 8.92647058965112, {{0.75, 0, 0.25, 0, 0.25, 0.5, -0, -1, -1.25, -1.5, 0, 2}, {-0.75, -0, -0.25, -0, -0.25, -0.5, 0, 1, 1.25, 1.5, -0, -2}}},
    {"cosine_embedding", [](V x, Reduction r) { return F::cosine_embedding_loss(x[0], x[1], doubles({1, -1, -1}), with<F::CosineEmbeddingLossFuncOptions>(r).margin(-0.3)); }, 2, {0.429267956553401, 0, 0.748939904960643}, 0.392735953838015, 1.17820786151404, {{0.18222893814617, 0.314826146196038, 0.128874864730752, -0.279210181803527, 0, 0, 0, 0, -0.143794313104343, -0.128190204588472, -0.0308198484197332, 0.0539719616800449}, {-0.0692263860999505, -0.0390987166395803, 0.150320799260782, 0.433632405844841, 0, 0, 0, 0, 0.0388141260780952, 0.0776792682448062, 0.0847848021592459, 0.085939629798445}}},
    {"cosine_embedding, one", [](V x, Reduction r) { return F::cosine_embedding_loss(x[0][0], x[1][0], tensor(-1), with<F::CosineEmbeddingLossFuncOptions>(r).margin(-0.9)); }, 2, {1.4707320434466}, 1.4707320434466, 1.4707320434466, {{-0.18222893814617, -0.314826146196038, -0.128874864730752, 0.279210181803527, 0, 0, 0, 0, 0, 0, 0, 0}, {0.0692263860999505, 0.0390987166395803, -0.150320799260782, -0.433632405844841, 0, 0, 0, 0, 0, 0, 0, 0}}},
    {"triplet_margin", [](V x, Reduction r) { return F::triplet_margin_loss(x[0], x[1], x[2], with<F::TripletMarginLossFuncOptions>(r)); }, 3, {0.0196553927654577, 1.99025654384158, 1.00029471932873}, 1.00340221864525, 3.01020665593576, {{0.198364444531852, 0.159355654543842, 0.396643182383679, -0.029824387854825, -0.23228265441528, -0.259252796179109, 0.238605453093532, 0.261302379104892, 0.00947070723040694, 0.0822865289551159, 0.145937597959354, -0.165871619972537}, {-0.228776233303776, -0.325123595346134, 0.0117901331112303, 0.635859320593603, 0.325686776339153, 0.330701044949522, 0.184567497571335, -0.0223557918079365, -0.164223862743599, -0.171087007870226, -0.0790150812093387, 0.00404667580446148}, {0.0304117887719234, 0.165767940802293, -0.408433315494909, -0.606034932738778, -0.0934041219238732, -0.071448248770413, -0.423172950664867, -0.238946587296955, 0.154753155513192, 0.0888004789151098, -0.0669225167500151, 0.161824944168076}}},
    {"triplet_margin, p, swap", [](V x, Reduction r) { return F::triplet_margin_loss(x[0], x[1], x[2], with<F::TripletMarginLossFuncOptions>(r).margin(0.5).p(3).eps(1e-3).swap(true)); }, 3, {0.313642003075996, 1.25581719770588, 0.572313465649036}, 0.713924222143638, 2.14177266643091, {{0.0863750289189991, 0.174727240768619, -0.000255475927409065, -0.672176408194082, -0.271265190983625, -0.289338639230807, 0.349594697611342, 0.142985210011082, 0.145949589734176, 0.158417098760117, 0.0337083770977257, -9.67597852777001e-05}, {-0.0496139120068039, -0.173918155019698, 0.640392697166958, 0.92917181327102, 0.292983100111707, 0.302069104738166, 0.0941700901237834, -0.00135723524218604, -0.145374714080173, -0.116681691325347, 0.0972361714916569, -0.168255261962404}, {-0.0367611169121953, -0.000809085748921084, -0.640137221239549, -0.256995405076938, -0.0217179091280828, -0.012730465507359, -0.443764787735126, -0.141627974768896, -0.000574875654002892, -0.0417354074347698, -0.130944548589383, 0.168352021747682}}},
    {"triplet_margin_with_distance", [](V x, Reduction r) { return F::triplet_margin_with_distance_loss(x[0], x[1], x[2], with<F::TripletMarginWithDistanceLossFuncOptions>(r).margin(2)); }, 3, {1.01965539276546, 2.99025654384158, 2.00029471932873}, 2.00340221864525, 6.01020665593576, {{0.198364444531852, 0.159355654543842, 0.396643182383679, -0.029824387854825, -0.23228265441528, -0.259252796179109, 0.238605453093532, 0.261302379104892, 0.00947070723040694, 0.0822865289551159, 0.145937597959354, -0.165871619972537}, {-0.228776233303776, -0.325123595346134, 0.0117901331112303, 0.635859320593603, 0.325686776339153, 0.330701044949522, 0.184567497571335, -0.0223557918079365, -0.164223862743599, -0.171087007870226, -0.0790150812093387, 0.00404667580446148}, {0.0304117887719234, 0.165767940802293, -0.408433315494909, -0.606034932738778, -0.0934041219238732, -0.071448248770413, -0.423172950664867, -0.238946587296955, 0.154753155513192, 0.0888004789151098, -0.0669225167500151, 0.161824944168076}}},
    {"triplet_margin_with_distance, own, swap", [](V x, Reduction r) { return F::triplet_margin_with_distance_loss(x[0], x[1], x[2], with<F::TripletMarginWithDistanceLossFuncOptions>(r).distance_function(taxicab).swap(true)); }, 3, {0.701125386349137, 2.84318017658119, 1.08344714209244}, 1.54258423500759, 4.62775270502276, {{0.75, 0.75, -0.75, -0.75, 0, 0, 0, 1, 0.25, 0.25, 0.25, -0.25}, {0, 0, 1.5, 1.5, 0.5, 0.5, 0.5, -0.5, 0, 0, 0, 0}, {-0.75, -0.75, -0.75, -0.75, -0.5, -0.5, -0.5, -0.5, -0.25, -0.25, -0.25, 0.25}}},
    {"poisson_nll", [](V x, Reduction r) { return F::poisson_nll_loss(x[0], x[1].square(), with<F::PoissonNLLLossFuncOptions>(r)); }, 2, {1.09079820409568, 1.13695262976407, 1.71690369896393, 2.55035605968557, 2.01128678609963, 1.69870064741905, 1.99236082845696, 1.40220189890189, 1.00301128516186, 0.877420061104214, 0.556919714993728, 1.09640716835948}, 1.42777658191717, 17.1333189830061, {{-0.664636329682527, -0.306264114958173, -0.395887370693656, 0, 0.502789123824266, 0.816058827127565, 1.47349680898453, 1.22663867828957, 0.0995191272086577, 0.443717284685577, 0.888468337917519, -0.719377967434407}, {0.0789457815088751, 0.45582227082309, 0.275055567963754, 0, 0.420227203949104, 0.872982098646279, 0.345560681199943, -0.473290226717888, -0.17833961084535, 0.591309183413406, -0.378128552022197, -3.04800954524733}}},
    {"poisson_nll, full", [](V x, Reduction r) { return F::poisson_nll_loss(x[0].square(), operands()[1].mul(3), with<F::PoissonNLLLossFuncOptions>(r).log_input(false).full(true).eps(1e-3)); }, 1, {6.43766573519234, 6.49091644841557, 2.66135654390114, 0.848921255721197, 1.00122270204557, 0.419252568524024, -0.0837861626344203, 3.35236583114521, 17.0071695621343, 5.6500677780739, -0.115017050647396, -0.044567886616264}, 3.63546394377126, 43.6255673252552, {{17.9820146509129, 5.92109408818331, 1.08374118550534, 0, 1.75979409821949, 3.98109986047169, 3.05453416421932, -6.87648522312764, -87.2888971765585, 19.406532471155, -5.11497085102185, -15.7475085369118}}},
    {"multi_margin", [](V x, Reduction r) { return F::multi_margin_loss(x[0], labels(), with<F::MultiMarginLossFuncOptions>(r)); }, 1, {0.564203904319212, 0.519632235771486, 1.18564676401563}, 0.756494301368777, 2.26948290410633, {{-0.1875, -0.1875, 0.5625, -0.1875, 0.375, -0.125, -0.125, -0.125, -0.0625, -0.0625, -0.0625, 0.1875}}},
    {"multi_margin, p, weight", [](V x, Reduction r) { return F::multi_margin_loss(x[0], labels(), with<F::MultiMarginLossFuncOptions>(r).p(2).margin(0.6).weight(doubles({0.5, 1, 2, 0.25}))); }, 1, {0.358534093128538, 0.0478494589883057, 0.276406096471772}, 0.227596549529539, 0.682789648588616, {{-0, -0.232874077800893, 0.823738291184974, -0.590864213384081, 0.109816117885743, -0.0656744882067347, -0.0406960965415661, -0.00344553313744241, -0.047910262857862, -0.0364874558717242, -0.0263081267723681, 0.110705845501954}}},
    {"multi_margin, one", [](V x, Reduction r) { return F::multi_margin_loss(x[0][1], tensor(2), with<F::MultiMarginLossFuncOptions>(r)); }, 1, {0.794063463438957}, 0.794063463438957, 0.794063463438957, {{0, 0, 0, 0, -0.1875, -0.1875, 0.5625, -0.1875, 0, 0, 0, 0}}},
    {"multilabel_margin", [](V x, Reduction r) { return F::multilabel_margin_loss(x[0], sets(), with<F::MultilabelMarginLossFuncOptions>(r)); }, 1, {1.08209096176277, 0.594236330117609, 0}, 0.558775763960125, 1.67632729188038, {{0.375, -0.375, -0.375, 0.375, -0.125, 0.375, -0.125, -0.125, -0, -0, -0, -0}}},
    {"multilabel_margin, one", [](V x, Reduction r) { return F::multilabel_margin_loss(x[0][1], sets()[0], with<F::MultilabelMarginLossFuncOptions>(r)); }, 1, {1.11170020644343}, 1.11170020644343, 1.11170020644343, {{0, 0, 0, 0, 0.375, -0.375, -0.375, 0.375, 0, 0, 0, 0}}},
    {"multilabel_soft_margin", [](V x, Reduction r) { return F::multilabel_soft_margin_loss(x[0], signs().add(1).div(2), with<F::MultilabelSoftMarginLossFuncOptions>(r)); }, 1, {0.811447523643511, 0.867305413093444, 0.572969591481696}, 0.750574176072884, 2.25172252821865, {{0.0886093037737467, -0.115019280200818, 0.0601016945597085, -0.134797067942885, -0.0913777906025817, -0.0895128497336037, 0.0407760509861252, 0.0493440206530464, 0.0301327964693948, 0.0358109189382794, -0.0218650815379826, -0.0185628634640867}}},
    {"multilabel_soft_margin, weight", [](V x, Reduction r) { return F::multilabel_soft_margin_loss(x[0], signs().add(1).div(2), with<F::MultilabelSoftMarginLossFuncOptions>(r).weight(doubles({0.5, 1, 2, 0.25}))); }, 1, {0.590134460042581, 0.707726171495999, 0.532275432194382}, 0.610045354577654, 1.83013606373296, {{0.0443046518868734, -0.115019280200818, 0.120203389119417, -0.0336992669857214, -0.0456888953012908, -0.0895128497336037, 0.0815521019722503, 0.0123360051632616, 0.0150663982346974, 0.0358109189382794, -0.0437301630759652, -0.00464071586602167}}},
  };
  return all;
}

TEST(MarginLosses, ValuesAndGradients) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    std::vector<Tensor> x = operands();
    x.resize(row.count);
    for (Tensor& t : x) t.requires_grad_();
    EXPECT_NEAR(row.f(x, Reduction::kMean).item<double>(), row.mean, 1e-12);
    EXPECT_NEAR(row.f(x, Reduction::kSum).item<double>(), row.sum, 1e-12);
    const Tensor y = row.f(x, Reduction::kNone);
    ASSERT_EQ(y.numel(), static_cast<int64_t>(row.values.size()));
    expect_values(y, row.values);
    y.flatten().mul(arange(1, y.numel() + 1, kDouble).div(4).sub(1)).sum().backward();
    for (size_t i = 0; i < row.count; ++i) expect_values(x[i].grad(), row.gradients[i]);
  }
}

// As many losses as the target has, for any shape of the input.
TEST(MarginLosses, ShapeOfTheTarget) {
  const auto sizes = [](const Tensor& x, const Tensor& target) {
    return ramet::multi_margin_loss(x, target, 1, 1, {}, kEach).sizes().vec();
  };
  const Tensor one = operands()[0][0], class_of_one = tensor({int64_t{2}});
  EXPECT_EQ(sizes(one, class_of_one), std::vector<int64_t>{1});
  EXPECT_EQ(sizes(one.unsqueeze(0), class_of_one), std::vector<int64_t>{1});
  EXPECT_EQ(sizes(one, class_of_one[0]), std::vector<int64_t>{});
  EXPECT_EQ(sizes(one.unsqueeze(0), class_of_one[0]), std::vector<int64_t>{});
}

TEST(MarginLosses, AreDifferentiableTwice) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    std::vector<Tensor> x = operands();
    x.resize(row.count);
    for (Tensor& t : x) t.requires_grad_();
    const auto f = [&](V in) { return std::vector<Tensor>{row.f(in, Reduction::kMean)}; };
    EXPECT_TRUE(autograd::gradcheck(f, x));
    EXPECT_TRUE(autograd::gradgradcheck(f, x));
  }
}

TEST(MarginLosses, OtherDtypes) {
  for (const Row& row : rows()) {
    if (contains(row.name, "weight")) continue;  // it is float64 here
    SCOPED_TRACE(row.name);
    for (const ScalarType dtype : {kFloat, kBFloat16}) {
      std::vector<Tensor> x = operands();
      for (Tensor& t : x) t = t.to(dtype);
      // Targets are float64 here, and so may the result be.
      const double got = row.f(x, Reduction::kMean).to(kDouble).item<double>();
      EXPECT_NEAR(got, row.mean, (dtype == kFloat ? 1e-5 : 0.1) * (1 + std::fabs(row.mean)));
    }
  }
}

TEST(MarginLosses, ModulesCallTheirFunctions) {
  const std::vector<Tensor> x = operands();
  const Tensor a = x[0], b = x[1], c = x[2], halves = signs().add(1).div(2);
  const Tensor weight = doubles({0.5, 1, 2, 0.25});
  const std::pair<Tensor, Tensor> pairs[] = {
      {HuberLoss(HuberLossOptions(kSum).delta(0.5))(a, b),
       F::huber_loss(a, b, F::HuberLossFuncOptions(kSum).delta(0.5))},
      {KLDivLoss(kBatchMean)(a, halves), F::kl_div(a, halves, kSum).div(3)},
      {KLDivLoss(KLDivLossOptions(kSum).log_target(true))(a, b),
       F::kl_div(a, b, F::KLDivFuncOptions(kSum).log_target(true))},
      {PoissonNLLLoss(PoissonNLLLossOptions().full(true))(a, halves),
       F::poisson_nll_loss(a, halves, F::PoissonNLLLossFuncOptions().full(true))},
      {HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(2))(a, signs()),
       F::hinge_embedding_loss(a, signs(), F::HingeEmbeddingLossFuncOptions().margin(2))},
      {SoftMarginLoss(kSum)(a, signs()), F::soft_margin_loss(a, signs(), kSum)},
      {MultiLabelMarginLoss(kNone)(a, sets()), F::multilabel_margin_loss(a, sets(), kNone)},
      {CosineEmbeddingLoss()(a, b, doubles({1, -1, 1})),
       F::cosine_embedding_loss(a, b, doubles({1, -1, 1}))},
      {MarginRankingLoss()(a, b, signs()), F::margin_ranking_loss(a, b, signs())},
      {TripletMarginLoss(TripletMarginLossOptions().swap(true))(a, b, c),
       F::triplet_margin_loss(a, b, c, F::TripletMarginLossFuncOptions().swap(true))},
      {TripletMarginWithDistanceLoss()(a, b, c), F::triplet_margin_loss(a, b, c)},
      {MultiMarginLoss(MultiMarginLossOptions().p(2).weight(weight))(a, labels()),
       F::multi_margin_loss(a, labels(), F::MultiMarginLossFuncOptions().p(2).weight(weight))},
      {MultiLabelSoftMarginLoss(MultiLabelSoftMarginLossOptions().weight(weight))(a, halves),
       F::multilabel_soft_margin_loss(a, halves,
                                      F::MultilabelSoftMarginLossFuncOptions().weight(weight))},
  };
  for (const auto& [got, want] : pairs) EXPECT_TRUE(same_bits(got, want)) << &got - &pairs[0].first;

  MultiMarginLoss loss(MultiMarginLossOptions().weight(weight));
  EXPECT_EQ(loss->named_buffers().keys(), std::vector<std::string>{"weight"});
  const auto copy = std::dynamic_pointer_cast<MultiMarginLossImpl>(loss->clone());
  EXPECT_TRUE(same_bits(copy->weight, weight));
  EXPECT_FALSE(copy->weight.is_same(loss->weight));
}

TEST(MarginLosses, WhereFormulasOverflow) {
  // As the exact values, not infinite.
  expect_values(F::soft_margin_loss(doubles({-2000, 2000}), doubles({1, 1}), kNone), {2000, 0});
  const Tensor y = doubles({-1, 0, 1}).requires_grad_();
  F::poisson_nll_loss(zeros({3}, kDouble), y, F::PoissonNLLLossFuncOptions().full(true)).backward();
  expect_values(y.grad(), {0, 0, 0});  // Stirling's term has no part here
  const Tensor none = zeros({0, 3}, kDouble);
  EXPECT_EQ(
      F::multi_margin_loss(none, zeros({0}, kLong), F::MultiMarginLossFuncOptions().reduction(kSum))
          .item<double>(),
      0);
  EXPECT_EQ(F::multilabel_margin_loss(none, zeros({0, 3}, kLong), kSum).item<double>(), 0);
  EXPECT_EQ(F::multilabel_margin_loss(tensor(2.0), tensor(int64_t{0})).item<double>(), 0);
  expect_values(
      F::multilabel_margin_loss(doubles({0.1, 0.2, 0.4, 0.8}), doubles({3, 0, -1, 1}).to(kLong)),
      {0.85});
}

// Labels that repeat, lists that end at once or never; terms of 0 and NaN.
TEST(MarginLosses, OfManyLabels) {
  const int64_t n = 7, c = 9;
  std::vector<double> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < n * c; ++i) {
    x.push_back(i % 5 == 0 ? double(i % 4) / 2 : std::sin(double(i)) * 2);
    y.push_back(i / c == 0 || (i / c == 3 && i % c > 3) ? -1 : i * i % (i / c == 5 ? c : 4));
  }
  x[3 * c + 7] = std::nan("");
  std::vector<double> losses, slopes(x.size(), 0.);
  for (int64_t i = 0; i < n; ++i) {
    const double* const row = x.data() + i * c;
    std::vector<int64_t> labels;
    for (int64_t j = 0; j < c && y[size_t(i * c + j)] >= 0; ++j)
      labels.push_back(y[size_t(i * c + j)]);
    double sum = 0;
    for (const int64_t label : labels)
      for (int64_t k = 0; k < c; ++k) {
        const double term = 1 - row[label] + row[k];
        if (std::count(labels.begin(), labels.end(), k) > 0 || term <= 0) continue;
        sum += term;
        slopes[size_t(i * c + k)] += 1. / c;
        slopes[size_t(i * c + label)] -= 1. / c;
      }
    losses.push_back(sum / c);
  }
  const Tensor targets = tensor(y).view({n, c});
  Tensor in = doubles(x).view({n, c}).requires_grad_();
  const Tensor got = F::multilabel_margin_loss(in, targets, kNone);
  got.sum().backward();
  for (int64_t i = 0; i < n; ++i) {
    if (i == 3) EXPECT_TRUE(std::isnan(got[i].item<double>()));
    else EXPECT_NEAR(got[i].item<double>(), losses[size_t(i)], 1e-12) << i;
  }
  const Tensor slope = in.grad().reshape({-1});
  for (size_t i = 0; i < slopes.size(); ++i)
    EXPECT_NEAR(slope[int64_t(i)].item<double>(), slopes[i], 1e-12) << i;
}

// No pair of classes has memory of its own: here they would be 64 MB.
TEST(MarginLosses, MemoryGrowsAsTheClasses) {
  const int64_t n = 16, c = 1000;
  const Tensor x = sines(n * c).to(kFloat).view({n, c}).requires_grad_();
  const Tensor y = full({n, c}, -1, kLong);
  y.narrow(1, 0, 3).copy_(arange(3 * n).view({n, 3}));
  reset_peak_memory_stats(kCPU);
  const int64_t before = memory_stats(kCPU).current;
  F::multilabel_margin_loss(x, y).backward();
  EXPECT_LE(memory_stats(kCPU).peak - before, n * c * 64);
}

// Every loss of no samples: a mean of nothing is NaN and their sum 0, as in PyTorch. Only PyTorch's
// multi_margin_loss and multilabel_margin_loss differ: they give what lay in memory.
TEST(MarginLosses, OfNoSamples) {
  using Loss = Tensor (*)(const Tensor& x, int64_t reduction);
#define RAMET_LOSS(...) [](const Tensor& x, int64_t r) -> Tensor { return __VA_ARGS__; }
  const std::pair<const char*, Loss> losses[] = {
      {"mse", RAMET_LOSS(mse_loss(x, zeros_like(x), r))},
      {"l1", RAMET_LOSS(l1_loss(x, zeros_like(x), r))},
      {"smooth_l1", RAMET_LOSS(smooth_l1_loss(x, zeros_like(x), r))},
      {"huber", RAMET_LOSS(huber_loss(x, zeros_like(x), r))},
      {"bce", RAMET_LOSS(binary_cross_entropy(x, zeros_like(x), {}, r))},
      {"bce logits", RAMET_LOSS(binary_cross_entropy_with_logits(x, zeros_like(x), {}, {}, r))},
      {"kl_div", RAMET_LOSS(ramet::kl_div(x, zeros_like(x), r))},
      {"nll", RAMET_LOSS(nll_loss(x, zeros({0}, kLong), {}, r))},
      {"nll, weight", RAMET_LOSS(nll_loss(x, zeros({0}, kLong), ones({3}, kDouble), r))},
      {"cross_entropy", RAMET_LOSS(cross_entropy_loss(x, zeros({0}, kLong), {}, r))},
      {"smoothed", RAMET_LOSS(cross_entropy_loss(x, zeros({0}, kLong), {}, r, -100, 0.1))},
      {"probabilities", RAMET_LOSS(cross_entropy_loss(x, zeros_like(x), {}, r))},
      {"poisson", RAMET_LOSS(poisson_nll_loss(x, zeros_like(x), true, true, 1e-8, r))},
      {"hinge", RAMET_LOSS(hinge_embedding_loss(x, zeros_like(x), 1, r))},
      {"soft_margin", RAMET_LOSS(ramet::soft_margin_loss(x, zeros_like(x), r))},
      {"ranking", RAMET_LOSS(margin_ranking_loss(x, zeros_like(x), zeros_like(x), 0, r))},
      {"cosine", RAMET_LOSS(cosine_embedding_loss(x, zeros_like(x), zeros({0}), 0, r))},
      {"triplet", RAMET_LOSS(ramet::triplet_margin_loss(x, zeros_like(x), zeros_like(x), 1, 2, 1e-6,
                                                        false, r))},
      {"multi_margin", RAMET_LOSS(ramet::multi_margin_loss(x, zeros({0}, kLong), 1, 1, {}, r))},
      {"multi_margin, 2, weight",
       RAMET_LOSS(ramet::multi_margin_loss(x, zeros({0}, kLong), 2, 1, ones({3}, kDouble), r))},
      {"multilabel_margin", RAMET_LOSS(ramet::multilabel_margin_loss(x, zeros({0, 3}, kLong), r))},
      {"multilabel_soft_margin",
       RAMET_LOSS(F::multilabel_soft_margin_loss(
           x, zeros_like(x), with<F::MultilabelSoftMarginLossFuncOptions>(Reduction(r))))},
  };
#undef RAMET_LOSS
  for (const auto& [name, loss] : losses) {
    SCOPED_TRACE(name);
    const Tensor x = zeros({0, 3}, kDouble).requires_grad_();
    EXPECT_EQ(loss(x, ramet::Reduction::None).size(0), 0);
    const Tensor mean = loss(x, ramet::Reduction::Mean), sum = loss(x, ramet::Reduction::Sum);
    EXPECT_TRUE(std::isnan(mean.item<double>()));
    EXPECT_EQ(sum.item<double>(), 0);
    EXPECT_EQ(mean.dim() + sum.dim(), 0);
    for (const Tensor& of : {mean, sum})
      EXPECT_EQ(autograd::grad({of}, {x})[0].sizes(), IntArrayRef({0, 3}));
  }
}

TEST(MarginLosses, Refuse) {
  const Tensor x = sines(24).view({4, 6}), classes = ones({4}, kLong);
  EXPECT_ERROR_TEXT(F::huber_loss(x, x, F::HuberLossFuncOptions().delta(0)),
                    "does not support non-positive values for delta");
  EXPECT_ERROR_TEXT(F::margin_ranking_loss(x, x, ones({6})),
                    "All input tensors should have same dimension but got sizes: input1: [4, 6]");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x, x, ones({2, 2})), "multi-target not supported");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x[0], x[0], ones({2})),
                    "1D target tensor expects 2D input tensors, but found inputs with sizes [6]");
  EXPECT_ERROR_TEXT(F::cosine_embedding_loss(x, x, ones({3})), "[4]");
  EXPECT_ERROR_TEXT(F::triplet_margin_loss(x, x, x[0]), "anchor 2D, positive 2D, and negative 1D");
  const auto multi = [&](const Tensor& y, const F::MultiMarginLossFuncOptions& o = {}) {
    return error_of([&] { F::multi_margin_loss(x, y, o); });
  };
  expect_part(multi(classes, F::MultiMarginLossFuncOptions().p(3)), "only p == 1 and p == 2");
  expect_part(multi(ones({3}, kLong)), "Expected target size [4], but got [3]");
  expect_part(multi(classes.mul(6)), "6");
  expect_part(multi(classes.neg()), "-1");
  expect_part(multi(ones({4})), "expected scalar type int64");
  expect_part(multi(classes, F::MultiMarginLossFuncOptions().weight(ones({2}))),
              "inconsistent weight size, expected 6 but got [2]");
  EXPECT_ERROR_TEXT(MultiMarginLoss(MultiMarginLossOptions().p(0)), "only p == 1 and p == 2");
  EXPECT_ERROR_TEXT(MultiMarginLoss(MultiMarginLossOptions().weight(ones({2, 2}))),
                    "weight must be one-dimensional");
  EXPECT_ERROR_TEXT(F::multi_margin_loss(zeros({3, 0}), ones({3}, kLong)),
                    "Expected non-empty vector or matrix");
  const Tensor sets = ones({4, 6}, kLong);
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, ones({4, 6})), "expected scalar type int64");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, ones({4, 5}, kLong)), "inconsistent target size");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, sets.mul(6)), "6");
  EXPECT_ERROR_TEXT(F::multilabel_margin_loss(x, sets.mul(-2)), "-2");
  EXPECT_ERROR_TEXT(F::multilabel_soft_margin_loss(tensor(1.0), tensor(1.0)),
                    "tensor has no dimensions");
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { F::huber_loss(x, Tensor()); }, [&] { F::kl_div(x, Tensor(), kSum); },
           [&] { F::poisson_nll_loss(Tensor(), x); }, [&] { F::hinge_embedding_loss(x, Tensor()); },
           [&] { F::soft_margin_loss(x, Tensor()); },
           [&] { F::cosine_embedding_loss(x, Tensor(), x); },
           [&] { F::triplet_margin_loss(x, x, Tensor()); },
           [&] { F::margin_ranking_loss(x, x, Tensor()); },
           [&] { F::multi_margin_loss(x, Tensor()); },
           [&] { F::multilabel_margin_loss(x, Tensor()); },
           [&] { F::multilabel_soft_margin_loss(x, Tensor()); }})
    EXPECT_ERROR_TEXT(call(), "undefined tensor");
}

using L = std::vector<int64_t>;

Tensor scores() { return sines(60, 1.7, 0.2).mul(3).view({5, 3, 4}); }
Tensor rows_of(const L& v, int64_t columns) { return tensor(v).view({-1, columns}); }

// What x's gradient gives with fixed numbers, for each sample.
Tensor slopes(const Tensor& x) {
  return x.grad().mul(sines(60).view({5, 3, 4})).sum(IntArrayRef({0, 2}));
}

TEST(CtcLoss, AsPyTorchBehindLogSoftmax) {
  const Tensor x = scores().requires_grad_(), targets = rows_of({1, 1, 2, 3, 2, 0, 2, 0, 0}, 3);
  const L steps = {5, 3, 4}, lengths = {3, 2, 0};
  const auto loss = [&](int64_t reduction) {
    return ctc_loss(x.log_softmax(2), targets, steps, lengths, 0, reduction);
  };
  expect_values(loss(kEach), {8.38640646234668, 1.55350480680052, 12.2782398548045});
  expect_values(loss(ramet::Reduction::Sum), {22.2181511239517});
  expect_values(loss(ramet::Reduction::Mean), {5.28348702632899});
  loss(ramet::Reduction::Mean).backward();
  expect_values(slopes(x).sum(), {-0.0640313560130482});
}

// What no alignment gives; targets in one dimension; the last class as the blank.
TEST(CtcLoss, InfiniteAsPyTorch) {
  const Tensor targets = tensor(L{0, 0, 1, 2}), steps = tensor(L{2, 2, 5}),
               lengths = tensor(L{3, 0, 1});
  for (const bool zero : {true, false}) {
    const Tensor x = scores().requires_grad_();
    const auto loss = [&](int64_t reduction) {
      return ctc_loss(x.log_softmax(2), targets, steps, lengths, 3, reduction, zero);
    };
    const double least = zero ? 0 : 1e30;
    expect_values(loss(kEach).clamp_max(1e30), {least, 4.59054466114058, 8.51966430504125});
    expect_values(loss(ramet::Reduction::Mean).clamp_max(1e30), {zero ? 4.37006965539394 : 1e30});
    loss(ramet::Reduction::Sum).backward();
    expect_values(slopes(x).narrow(0, 1, 2), {0.10812250516427, 1.75228846647937});
    // NaN at the sample's own steps alone, of all classes, or 0.
    for (int64_t t = 0; t < 5; ++t)
      for (const double g : values(x.grad()[t][0]))
        EXPECT_TRUE(!zero && t < 2 ? std::isnan(g) : g == 0);
  }
}

TEST(CtcLoss, ANaNIsNoInfinity) {
  for (const L& target : {L{}, L{1}})
    for (const bool zero : {false, true}) {
      const Tensor x = full({2, 3}, NAN).requires_grad_();
      const Tensor loss = ctc_loss(x, tensor(target), L{2}, L{static_cast<int64_t>(target.size())},
                                   0, ramet::Reduction::Mean, zero);
      loss.backward();
      EXPECT_TRUE(std::isnan(loss.item<float>()));
      for (const double g : values(x.grad())) EXPECT_TRUE(std::isnan(g));
    }
}

// A NaN is in every loss that reads it: not taken for what no alignment gives, where the target is
// empty.
TEST(CtcLoss, NaNStaysNaN) {
  const Tensor targets = rows_of({1, 2, 2, 1, 1, 1}, 2), steps = tensor(L{5, 5, 5}),
               lengths = tensor(L{0, 2, 0});
  for (const ScalarType type : {ramet::kFloat, ramet::kDouble}) {
    for (const int64_t at : {0, 2, 4}) {
      const Tensor x = scores().to(type);
      x[at][0][0].fill_(NAN);
      const Tensor y = ctc_loss(x, targets, steps, lengths, 0, kEach, true);
      EXPECT_TRUE(std::isnan(y[0].item<double>())) << at;
      EXPECT_TRUE(std::isfinite(y[1].item<double>()));
      EXPECT_TRUE(std::isfinite(y[2].item<double>()));
    }
  }
}

// By definition: the sum over all ways to give each step a class that leave the target once
// repetitions and then blanks are gone.
double by_alignments(const Tensor& log_probs, const L& target, int64_t blank) {
  const int64_t steps = log_probs.size(0), classes = log_probs.size(1);
  const std::vector<double> lp = values(log_probs);
  double sum = 0;
  L path(static_cast<size_t>(steps), 0);
  for (;;) {
    L left;
    double log_p = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t c = path[static_cast<size_t>(t)];
      log_p += lp[static_cast<size_t>(t * classes + c)];
      if (c != blank && (t == 0 || c != path[static_cast<size_t>(t - 1)])) left.push_back(c);
    }
    if (left == target) sum += std::exp(log_p);
    int64_t t = steps;
    while (t > 0 && ++path[static_cast<size_t>(t - 1)] == classes)
      path[static_cast<size_t>(--t)] = 0;
    if (t == 0) return -std::log(sum);
  }
}

TEST(CtcLoss, IsTheSumOverAllAlignments) {
  for (const int64_t blank : {0, 2})
    for (const int64_t steps : {1, 3, 6}) {
      // Not normalised: the sum and its derivative are those of any numbers.
      const Tensor x = sines(steps * 3, 1.3, 0.4).view({steps, 3}).requires_grad_();
      const int64_t a = blank == 0 ? 1 : 0, b = 3 - a - blank;
      for (const L& target :
           std::vector<L>{{}, {a}, {b}, {a, b}, {a, a}, {b, a, b}, {a, b, b}, {a, a, a}}) {
        SCOPED_TRACE(testing::Message() << steps << " steps, target " << IntArrayRef(target));
        const auto loss = [&](const Tensor& y) {
          return ctc_loss(y, tensor(target), L{steps}, L{static_cast<int64_t>(target.size())},
                          blank, kEach);
        };
        const double want = by_alignments(x, target, blank), got = loss(x).item<double>();
        if (std::isinf(want)) {
          EXPECT_EQ(got, want);
          continue;
        }
        EXPECT_NEAR(got, want, 1e-12);
        // The derivative by differences of the definition.
        const Tensor slope = autograd::grad({loss(x)}, {x})[0];
        for (int64_t i = 0; i < x.numel(); ++i) {
          const auto moved = [&](double by) {
            Tensor y = x.detach().clone();
            y.data_ptr<double>()[i] += by;
            return by_alignments(y, target, blank);
          };
          EXPECT_NEAR(values(slope)[static_cast<size_t>(i)], (moved(1e-5) - moved(-1e-5)) / 2e-5,
                      1e-8);
        }
      }
    }
}

// Beyond the table's second derivatives: those of the gradient are composed.
TEST(CtcLoss, IsDifferentiableThreeTimes) {
  const autograd::CheckedFunction slope = [](V in) {
    const Tensor y = ctc_loss(in[0].log_softmax(2), rows_of({1, 2, 1, 1}, 2), L{4, 3}, L{2, 2});
    const Tensor g = autograd::grad({y}, {in[0]}, {}, true, true)[0];
    return std::vector<Tensor>{g.mul(sines(24, 1.1).view({4, 2, 3}))};
  };
  const Tensor x = sines(24, 1.7).view({4, 2, 3}).requires_grad_();
  EXPECT_NO_THROW(autograd::gradgradcheck(slope, {x}));
}

// As the transposed logits of a network that has the batch first; lengths of any whole dtype.
TEST(CtcLoss, FormsAgree) {
  const Tensor x = scores().log_softmax(2), padded = rows_of({1, 2, 3, 3, 9, -9, 2, 1, 7}, 3);
  const L steps = {5, 4, 3}, lengths = {3, 1, 2};
  const Tensor want = ctc_loss(x, padded, steps, lengths, 0, kEach),
               joined = tensor(L{1, 2, 3, 3, 2, 1});
  const Tensor apart = x.transpose(0, 1).contiguous().transpose(0, 1);
  const Tensor narrow_steps = tensor(steps).to(kInt),
               bytes = tensor(lengths).to(kByte).view({3, 1});
  for (const Tensor& got :
       {ctc_loss(x, joined, steps, lengths, 0, kEach),
        ctc_loss(apart, padded.to(kInt), narrow_steps, bytes, 0, kEach),
        ctc_loss(apart, joined.to(kDouble), narrow_steps, bytes, 0, kEach),
        F::ctc_loss(x, padded, narrow_steps, bytes, F::CTCLossFuncOptions().reduction(kNone)),
        CTCLoss(CTCLossOptions().reduction(kNone))(x, joined, narrow_steps, bytes)})
    EXPECT_TRUE(same_bits(got, want));
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor own = padded[b].narrow(0, 0, lengths[size_t(b)]);
    const Tensor one =
        ctc_loss(x.select(1, b), own, steps[size_t(b)], lengths[size_t(b)], 0, kEach);
    EXPECT_EQ(one.dim(), 0);
    EXPECT_TRUE(same_bits(one, want[b]));
  }
  // What a backward needs is its own.
  const Tensor y = scores().requires_grad_(), labels = joined.clone();
  const Tensor loss = ctc_loss(y, labels, steps, lengths),
               same = ctc_loss(y, joined, steps, lengths);
  labels.fill_(-1);
  EXPECT_TRUE(same_bits(autograd::grad({loss}, {y})[0], autograd::grad({same}, {y})[0]));
}

// The losses are 24,000, of which a float32 rounds 1e-3, and states that matter are 10,000 below
// others. Sums that are not taken relative to the largest are 2.6 off here.
TEST(CtcLoss, ManyStepsInFloat) {
  const Tensor x = sines(8000 * 5, 2.3, 0.1).mul(3).view({8000, 1, 5}).log_softmax(2);
  const auto slope = [&](ScalarType t) {
    const Tensor y = x.to(t).requires_grad_();
    ctc_loss(y, tensor(L{1, 2, 2, 4, 1}).repeat({8}), L{8000}, L{40}).backward();
    return y.grad().to(kDouble);
  };
  EXPECT_LT(slope(kFloat).sub(slope(kDouble)).abs().max().item<double>() * 40, 5e-3);
}

}  // namespace
}  // namespace ramet::nn
