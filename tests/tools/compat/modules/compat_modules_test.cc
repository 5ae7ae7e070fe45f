// What nn does in a program that includes the LibTorch compatibility headers. It calls its classes
// torch::nn::..., and optimizers that are written with LibTorch's macros save and load.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nn/module/class_name.h"
#include "ramet.h"
#include "ramet/compat/optim.h"
#include "ramet/compat/prefix.h"
#include "tests/error_text.h"
#include "tests/modules.h"

class OfNoNamespaceImpl : public ramet::nn::Module {};
namespace mine {
struct Bar : ramet::nn::Cloneable<Bar> {
  void reset() override {}
};
}  // namespace mine

namespace ramet::nn {
namespace {

// And in which state it leaves the stream: a program's next bool is printed as LibTorch leaves it.
template <class T> std::string print(const T& value) {
  std::ostringstream out;
  out << value << true;
  return out.str();
}

// What LibTorch 2.15 prints.
TEST(CompatModules, ModulesPrintAsLibTorchs) {
  int compared = 0;
  for (const testing::ModuleExample& example : testing::module_examples()) {
    if (!example.prints) continue;
    EXPECT_EQ(print(*example.made()), example.prints);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(CompatModules, TreesPrintAsLibTorchs) {
  const OrderedDict<std::string, std::shared_ptr<Module>> named = {
      {"a", Linear(1, 2).ptr()}, {"b", Sequential(Linear(1, 2)).ptr()}};
  Module top;
  top.register_module("seq", Sequential({{"x", Linear(1, 2)}, {"f", Functional(relu)}}));
  top.register_module("list", ModuleList(ModuleList(Linear(1, 1)), Sequential()));
  top.register_module("dict", ModuleDict(named));
  top.register_module("foo", std::make_shared<OfNoNamespaceImpl>());
  top.register_module("bar", std::make_shared<mine::Bar>());
  top.register_parameter("p", ones({1}));
  EXPECT_EQ(print(top),
            "torch::nn::Module(\n"
            "  (seq): torch::nn::Sequential(\n"
            "    (x): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    (f): torch::nn::Functional()\n"
            "  )\n"
            "  (list): torch::nn::ModuleList(\n"
            "    (0): torch::nn::ModuleList(\n"
            "      (0): torch::nn::Linear(in_features=1, out_features=1, bias=true)\n"
            "    )\n"
            "    (1): torch::nn::Sequential\n"
            "  )\n"
            "  (dict): torch::nn::ModuleDict(\n"
            "    (a): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    (b): torch::nn::Sequential(\n"
            "      (0): torch::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    )\n"
            "  )\n"
            "  (foo): OfNoNamespaceImpl\n"
            "  (bar): mine::Bar\n"
            ")true");
}

TEST(CompatModules, NamesAndErrorTexts) {
  EXPECT_EQ(Linear(1, 2)->name(), "torch::nn::LinearImpl");
  EXPECT_EQ(Sequential()->name(), "torch::nn::SequentialImpl");
  EXPECT_EQ(mine::Bar().name(), "mine::Bar");
  EXPECT_EQ(Module("ramet::mine").name(), "ramet::mine");  // given, not found
  EXPECT_EQ(detail::with_root_namespace("A<ramet::B, my::ramet::C, gramet::D, ramet::nn::E>"),
            "A<torch::B, my::ramet::C, gramet::D, torch::nn::E>");
  EXPECT_ERROR_TEXT(Module().clone(),
                    "clone() has not been implemented for torch::nn::Module. Subclass "
                    "torch::nn::Cloneable<torch::nn::Module> instead of torch::nn::Module to "
                    "inherit the ability to clone.");
  EXPECT_ERROR_TEXT(AnyModule(Linear(1, 2)).get<ReLUImpl>(),
                    "Attempted to cast module of type torch::nn::LinearImpl to type "
                    "torch::nn::ReLUImpl");
}

// Files are the same with and without the LibTorch compatibility headers.
TEST(CompatModules, FilesDoNotHaveTheName) {
  const Linear layer(1, 1);
  const optim::SGD sgd(layer->parameters(), 0.1);
  optim::Adam adam(layer->parameters());
  serialize::OutputArchive out;
  sgd.save(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  IValue options;
  in.read("options", options);
  EXPECT_EQ(options.toStringRef(), "ramet::optim::SGDOptions");
  EXPECT_ERROR_TEXT(adam.load(in), "got torch::optim::SGDOptions, expected torch::optim::Adam");
}

// ---- an optimizer in LibTorch's style -----------------------------------------------------------

struct PushOptions : public optim::OptimizerCloneableOptions<PushOptions> {
  using betas_t = std::tuple<double, double>;
  explicit PushOptions(double lr = 0.5) : lr_(lr) {}
  RAMET_ARG(double, lr) = 0.5;
  RAMET_ARG(betas_t, betas) = std::make_tuple(0.25, 0.75);
  RAMET_ARG(std::optional<int64_t>, limit) = std::nullopt;
  RAMET_ARG(bool, fast) = false;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { this->lr(lr); }
  void serialize(serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(betas_t, betas);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(int64_t, limit);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, fast);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(betas);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(limit);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(fast);
  }
};
struct PushParamState : public optim::OptimizerCloneableParamState<PushParamState> {
  RAMET_ARG(int64_t, step) = 0;
  RAMET_ARG(Tensor, sum);
  RAMET_ARG(Tensor, never);
  RAMET_ARG(std::deque<Tensor>, last);

 public:
  void serialize(serialize::InputArchive& archive) override {
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, step);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Tensor, sum);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Tensor, never);
    _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_DEQUE(std::deque<Tensor>, last);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(step);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(sum);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG(never);
    _TORCH_OPTIM_SERIALIZE_TORCH_ARG_DEQUE(last);
  }
};
class Push : public optim::Optimizer {
 public:
  explicit Push(std::vector<Tensor> params, PushOptions defaults = PushOptions())
      : Optimizer({optim::OptimizerParamGroup(std::move(params))},
                  std::make_unique<PushOptions>(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override {
    const NoGradGuard off;
    for (auto& group : param_groups_)
      for (auto& p : group.params()) {
        auto& kept = state_[p.unsafeGetTensorImpl()];
        if (!kept) kept = std::make_unique<PushParamState>();
        auto& state = static_cast<PushParamState&>(*kept);
        state.step(state.step() + 1).sum(p.detach().clone());
        state.last().push_back(p.detach().clone());
        p.add_(static_cast<PushOptions&>(group.options()).lr());
      }
    return closure ? closure() : Tensor();
  }
  void save(serialize::OutputArchive& archive) const override { serialize(*this, archive); }
  void load(serialize::InputArchive& archive) override { serialize(*this, archive); }

 private:
  template <class Self, class Archive> static void serialize(Self& self, Archive& archive) {
    _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(Push);
  }
};

TEST(CompatModules, AnOptimizerWithLibTorchsMacrosSavesAndLoads) {
  const Tensor p = zeros({2}, kDouble);
  Push one({p}, PushOptions(2).betas({0.5, 0.125}).limit(7).fast(true));
  one.step(), one.step();
  std::stringstream file;
  save(one, file);
  Push two({p});
  load(two, file);
  const auto& options = static_cast<const PushOptions&>(two.param_groups()[0].options());
  EXPECT_EQ(options.lr(), 2);
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.125));
  EXPECT_EQ(options.limit(), 7);
  EXPECT_TRUE(options.fast());
  const auto& state = static_cast<const PushParamState&>(*two.state().at(p.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 2);
  EXPECT_EQ(state.sum().sum().item<double>(), 4);  // 2 + 2
  EXPECT_FALSE(state.never().defined());
  ASSERT_EQ(state.last().size(), 2u);
  EXPECT_EQ(state.last()[1].sum().item<double>(), 4);
}

}  // namespace
}  // namespace ramet::nn
