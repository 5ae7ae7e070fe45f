// What programs do with LibTorch's namespaces. Compiled only, each name once in each way in which
// programs reach it.

// As CUDA's own header would declare them.
struct cudaDeviceProp {
  char name[256];
  int major;
};
inline int cudaGetDeviceProperties(cudaDeviceProp*, int) { return 0; }

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "torch/csrc/api/include/torch/nn/modules/linear.h"

// Opened again, with classes, overloads and functions of the program's own.
namespace torch {

struct MyShape {
  MyShape(int64_t rows, int64_t columns, bool) : rows(rows), columns(columns) {}
  int64_t rows, columns;
};
inline Tensor zeros(const MyShape& shape) { return zeros({shape.rows, shape.columns}); }
inline Tensor twice(const Tensor& x) { return add(x, x) * Scalar(1) + torch::ones_like(x); }
// In at, as in LibTorch: one of torch's own hides it.
inline Tensor relu(const Tensor& x) { return at::relu(x) + 1; }

// Names of Ramet's that LibTorch does not have.
struct Checkpoint {
  int step = 0;
};
class Observer {};
inline int fail(int code) { return code; }
namespace parallel {
struct Plan {};
}  // namespace parallel

namespace nn {
struct GatedImpl : Cloneable<GatedImpl> {
  explicit GatedImpl(int64_t width) : width(width) { reset(); }
  void reset() override {
    inner = register_module("inner", Linear(LinearOptions(width, width).bias(false)));
    init::xavier_uniform_(inner->weight);
  }
  Tensor forward(const Tensor& x) { return torch::sigmoid(inner(x)) * functional::relu(x); }
  int64_t width;
  Linear inner{nullptr};
};
class Gated : public ModuleHolder<GatedImpl> {
 public:
  using ModuleHolder<GatedImpl>::ModuleHolder;
};
inline int64_t count(const Module& module) {
  return static_cast<int64_t>(module.parameters().size());
}
namespace functional {
inline Tensor relu(const Tensor& x, double scale) { return functional::relu(x) * scale; }
inline Tensor swish(const Tensor& x) { return x * torch::sigmoid(x); }
}  // namespace functional
namespace init {
inline Tensor halves_(Tensor x) { return constant_(x, 0.5); }
}  // namespace init
}  // namespace nn

namespace optim {
class CosineAnnealingLR : public LRScheduler {  // LibTorch has none, and Ramet has
 public:
  using LRScheduler::LRScheduler;

 private:
  std::vector<double> get_lrs() override { return get_current_lrs(); }
};
inline double rate(const SGDOptions& options) { return options.lr(); }
}  // namespace optim

namespace data {
namespace datasets {
class Rows : public Dataset<Rows> {
 public:
  Example<> get(size_t index) override {
    return {rows_[static_cast<int64_t>(index)], torch::zeros({1})};
  }
  optional<size_t> size() const override { return 4; }

 private:
  Tensor rows_ = torch::rand({4, 2});
};
}  // namespace datasets
}  // namespace data
}  // namespace torch

namespace at {
inline Tensor halves(const Tensor& x) { return x / 2; }
}  // namespace at

namespace F = torch::nn::functional;
namespace ti = torch::indexing;

// Names that are reachable through both.
using at::Tensor;
using torch::Tensor;

namespace without_directives {
inline Tensor all() {
  torch::nn::Gated gated(2);
  Tensor y = F::swish(gated(torch::zeros(torch::MyShape(2, 2, true))));
  y = F::relu(F::relu(y), 2.0) + torch::relu(torch::twice(y)) + at::halves(y);
  y = y.index({ti::Slice(), 0}) + y.index({at::indexing::None, torch::indexing::Ellipsis, 1});
  torch::nn::init::halves_(gated->inner->weight);
  static_assert(std::is_same<torch::Tensor, at::Tensor>::value, "one class");
  static_assert(std::is_same<torch::ScalarType, c10::ScalarType>::value, "one enumeration");
  static_assert(std::is_same<torch::Dtype, at::ScalarType>::value, "one enumeration");
  static_assert(std::is_same<c10::optional<int>, torch::optional<int>>::value, "one class");
  const torch::Checkpoint mine{torch::fail(3)};
  return y + mine.step + torch::nn::count(*gated) + static_cast<int>(torch::Reduction::Mean);
}
}  // namespace without_directives

// As most programs go on.
using namespace torch;
using namespace at;
using namespace c10;
using namespace torch::indexing;
using namespace torch::autograd;

struct Captured {  // Ramet's too, and not LibTorch's
  int64_t count;
};
inline int describe(const Captured& c) { return static_cast<int>(c.count); }
inline int resolve(int x) { return x; }

struct Double : Function<Double> {
  static variable_list forward(AutogradContext* context, const Variable& x) {
    context->save_for_backward({x});
    return {x * 2};
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

struct Net : nn::Module {
  Net() : first(nn::LinearOptions(2, 3)), rest(nn::Linear(3, 2), nn::Functional(torch::sigmoid)) {
    register_module("first", first);
    register_module("rest", rest);
  }
  Tensor forward(Tensor x) { return rest->forward(F::relu(first->forward(x))); }
  nn::Linear first;
  nn::Sequential rest;
};

int main() {
  torch::manual_seed(1);
  auto net = std::make_shared<Net>();
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3).weight_decay(0.1));
  optim::CosineAnnealingLR schedule(adam);
  auto loader = torch::data::make_data_loader<data::samplers::SequentialSampler>(
      data::datasets::Rows().map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions(2));
  for (auto& batch : *loader) {
    const Tensor loss = mse_loss(net->forward(batch.data), batch.data) +
                        l1_loss(batch.target, batch.target, at::Reduction::Sum);
    loss.backward();
    adam.step();
    schedule.step();
  }
  const Tensor slice =
      torch::rand({3, 4}, dtype(kFloat).device(kCPU)).index({Slice(0, 2), Ellipsis});
  const Tensor sum = Double::apply(slice)[0].sum() + tensor({1.f, 2.f}).sum() +
                     torch::full({}, 2.0) + torch::relu(slice).sum();
  const auto gradients = grad({sum.sum()}, {sum}, {}, nullopt, false, true);
  const NoGradGuard no_grad;
  IntArrayRef sizes = slice.sizes();
  save(sum, "/dev/null");
  std::cout << std::setprecision(3) << std::sqrt(2.0) << sizes << sum << describe(Captured{3})
            << resolve(2) << without_directives::all() << '\n';
  assert(!torch::cuda::is_available());
  if (torch::cuda::is_available())
    std::cout << at::cuda::getDeviceProperties(0)->name
              << at::cuda::getCurrentDeviceProperties()->major;
  return 0;
}
