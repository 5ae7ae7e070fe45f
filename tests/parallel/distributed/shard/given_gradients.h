// A module with gradients that the test gives: for tests of what DistributedDataParallel does to
// them.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

using Shapes = std::vector<std::vector<int64_t>>;

/// Parameters w0, w1, ...; the gradient of w<i> is gradients[i], none where that is undefined.
struct GivenImpl : nn::Cloneable<GivenImpl> {
  explicit GivenImpl(Shapes s, ScalarType t = kFloat) : shapes(std::move(s)), dtype(t) {
    GivenImpl::reset();
  }
  void reset() override {
    w.clear();
    for (size_t i = 0; i < shapes.size(); ++i)
      w.push_back(
          register_parameter("w" + std::to_string(i), zeros(shapes[i], TensorOptions(dtype))));
  }
  Tensor forward(const Tensor& rows, const std::vector<Tensor>& gradients) {
    Tensor sum = rows.sum() * 0;
    for (size_t i = 0; i < w.size(); ++i)
      if (gradients[i].defined()) sum = sum + (w[i] * gradients[i]).sum();
    return sum;
  }
  Shapes shapes;
  ScalarType dtype;
  std::vector<Tensor> w;
};
RAMET_MODULE(Given);

using GivenDdp = DistributedDataParallel<Given>;

/// One backward with these gradients on this rank, `rows` rows in its batch; what becomes of them.
inline std::vector<Tensor> reduced(GivenDdp& ddp, Given& net, const std::vector<Tensor>& gradients,
                                   int64_t rows = 1) {
  net->zero_grad();
  ddp(ones({rows, 1}, TensorOptions(net->dtype)),
      nn::parallel::NoScatter<std::vector<Tensor>>(gradients))
      .backward();
  std::vector<Tensor> out;
  for (const Tensor& p : net->w) out.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
  return out;
}

/// A stage that throws in step number `step`, where it `fails`.
struct FailingStage final : ReduceStage {
  FailingStage(bool fails, int64_t step) : fails_(fails), step_(step) {}
  std::string description() const override { return "failing"; }
  bool lossless() const override { return true; }
  void reduce(std::vector<StageValues>& list, const StageNext& next) override {
    if (fails_ && next.step() == step_) throw std::runtime_error("Badness!");
    next.reduce(list);
  }

 private:
  const bool fails_;
  const int64_t step_;
};

/// Normal gradients of a rank at a step: the same for every caller.
inline std::vector<Tensor> random_gradients(const Shapes& shapes, int rank, int step) {
  Generator g(Device(kCPU, 0), static_cast<uint64_t>(1000 * step + rank + 1));
  std::vector<Tensor> out;
  for (const auto& s : shapes) out.push_back(randn(s, g));
  return out;
}

inline PowerSgdOptions low_rank(int64_t rank, int64_t start, double min_compression_rate = 2) {
  PowerSgdOptions o;
  o.rank = rank;
  o.start = start;
  o.min_compression_rate = min_compression_rate;
  return o;
}

inline DdpOptions with_stages(std::vector<std::shared_ptr<CommStage>> stages,
                              Average average = Average::mean) {
  DdpOptions o;
  o.stages = std::move(stages);
  o.average = average;
  return o;
}

}  // namespace ramet::distributed
