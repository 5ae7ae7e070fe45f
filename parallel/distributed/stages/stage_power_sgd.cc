// PowerSGD: power_sgd_stage in stages.h gives the formulas.
#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "kernels/random/random.h"
#include "parallel/distributed/stages/stages.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed {
namespace {

/// Makes the columns of a [rows, columns] orthonormal, in double, from left to right. It runs
/// Gram-Schmidt twice, which is enough (Giraud et al., 2005). A column that depends linearly on
/// those before becomes zero. Returns the number of columns that did not. Returns -1, with `a`
/// unchanged, if a value is not finite.
int64_t orthonormalize(const Tensor& a) {
  const int64_t rows = a.size(0), columns = a.size(1);
  float* const values = static_cast<float*>(a.ptr());
  std::vector<std::vector<double>> v;
  for (int64_t j = 0; j < columns; ++j) {
    std::vector<double>& column = v.emplace_back();
    for (int64_t i = 0; i < rows; ++i) column.push_back(values[i * columns + j]);
  }
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  int64_t kept = 0;
  for (size_t j = 0; j < v.size(); ++j) {
    const double before = std::sqrt(dot(v[j], v[j]));
    if (!std::isfinite(before)) return -1;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t k = 0; k < j; ++k) {
        const double along = dot(v[j], v[k]);
        for (size_t i = 0; i < v[j].size(); ++i) v[j][i] -= along * v[k][i];
      }
    const double after = std::sqrt(dot(v[j], v[j]));
    const bool keep = after > 1e-12 * before;
    for (double& x : v[j]) x = keep ? x / after : 0;
    kept += keep;
  }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      values[i * columns + j] =
          static_cast<float>(v[static_cast<size_t>(j)][static_cast<size_t>(i)]);
  return kept;
}

struct Shape {
  int64_t n = 0, m = 0, r = 0;  // r = 0: not compressed
};

class PowerSgd final : public ReduceStage {
 public:
  explicit PowerSgd(const PowerSgdOptions& options) : options_(options) {
    RAMET_CHECK(options.rank >= 1, "power_sgd_stage", "rank: got ", options.rank,
                ", expected at least 1");
    RAMET_CHECK(options.start >= 0, "power_sgd_stage", "start: got ", options.start,
                ", expected 0 or more steps");
    RAMET_CHECK(options.min_compression_rate >= 0, "power_sgd_stage", "min_compression_rate: got ",
                options.min_compression_rate, ", expected 0 or more");
  }
  std::string description() const override {
    return ramet::detail::join(
        "power_sgd(rank ", options_.rank, ", start ", options_.start, ", min_compression_rate ",
        options_.min_compression_rate, options_.error_feedback ? "" : ", no error feedback",
        options_.warm_start ? "" : ", cold start", ", seed ", options_.seed, ")");
  }
  bool lossless() const override { return false; }
  bool exclusive() const override { return true; }
  void attach(const StageSetting& setting) override {
    parameters_ = setting.parameters;
    memory_.clear();
  }

  std::map<std::string, Tensor> state() const override {
    std::map<std::string, Tensor> out;
    for (const auto& [name, memory] : memory_) {
      if (memory.q.defined()) out[name + ".q"] = memory.q;
      if (memory.error.defined()) out[name + ".error"] = memory.error;
    }
    return out;
  }
  void load_state(const std::map<std::string, Tensor>& state) override;
  void reduce(std::vector<StageValues>& list, const StageNext& next) override;

 private:
  struct Memory {
    Tensor q;      // [m, r], the same on all ranks
    Tensor error;  // [n, m], this rank's
  };
  // A gradient that is being reduced.
  struct Matrix {
    size_t index;  // in the list
    size_t at;     // of P, in the first message
    Shape shape;
    bool mine;     // this rank has a gradient
    Tensor delta;  // gradient and error
    Memory next;   // the new state, if all succeeds
  };
  Shape shape_of(IntArrayRef sizes) const {
    Shape s;
    if (sizes.size() < 2) return s;
    int64_t numel = 1;
    for (int64_t d : sizes) numel *= d;
    if (numel == 0) return s;
    s.n = sizes[0];
    s.m = numel / s.n;
    const int64_t r = std::min({options_.rank, s.n, s.m});
    if (static_cast<double>((s.n + s.m) * r) * options_.min_compression_rate <
        static_cast<double>(numel))
      s.r = r;
    return s;
  }
  Tensor first_factor(const std::string& name, const Shape& shape, const Memory& memory,
                      int64_t step) const;

  const PowerSgdOptions options_;
  std::map<std::string, std::vector<int64_t>> parameters_;
  std::map<std::string, Memory> memory_;
};

void PowerSgd::load_state(const std::map<std::string, Tensor>& state) {
  std::map<std::string, Memory> loaded;
  for (const auto& [key, value] : state) {
    const size_t dot = key.rfind('.');
    const std::string name = key.substr(0, dot), what = key.substr(dot + 1);
    const auto parameter = parameters_.find(name);
    RAMET_CHECK(parameter != parameters_.end() && (what == "q" || what == "error"), "load_state",
                "power_sgd: got '", key, "', expected the state of a parameter of the module");
    const Shape s = shape_of(parameter->second);
    const std::vector<int64_t> sizes = what == "q" ? std::vector{s.m, s.r} : std::vector{s.n, s.m};
    RAMET_CHECK(s.r > 0 && value.sizes() == IntArrayRef(sizes) && value.scalar_type() == kFloat,
                "load_state", "power_sgd: '", key, "': got ", describe(value), ", expected ",
                s.r > 0 ? ramet::detail::join("float32", IntArrayRef(sizes))
                        : "none: the parameter is not compressed");
    (what == "q" ? loaded[name].q : loaded[name].error) = value.clone();
  }
  memory_ = std::move(loaded);
}

// Orthonormal columns, the same on all ranks: those of the step before, and random ones in place of
// those that are missing.
Tensor PowerSgd::first_factor(const std::string& name, const Shape& shape, const Memory& memory,
                              int64_t step) const {
  const bool warm = options_.warm_start && memory.q.defined() &&
                    memory.q.sizes() == IntArrayRef({shape.m, shape.r});
  if (warm) {
    Tensor q = memory.q.clone();
    if (orthonormalize(q) == shape.r) return q;
  }
  Tensor q = empty({shape.m, shape.r});
  kernels::random_normal({Device(kCPU, 0), 0},
                         {q.ptr(),
                          q.numel(),
                          {XXH3_64bits_withSeed(name.data(), name.size(), options_.seed),
                           static_cast<uint64_t>(step), 0},
                          0,
                          1,
                          kFloat});
  if (warm) q = cat({memory.q, q}, 1);
  orthonormalize(q);
  if (!warm) return q;
  std::vector<int64_t> columns;  // those that are not zero: the old ones first
  for (int64_t j = 0; j < q.size(1) && columns.size() < static_cast<size_t>(shape.r); ++j)
    if (q.select(1, j).ne(0).any().item<bool>()) columns.push_back(j);
  return q.index_select(1, tensor(columns, TensorOptions(kLong))).contiguous();
}

void PowerSgd::reduce(std::vector<StageValues>& list, const StageNext& next) {
  if (next.step() < options_.start) return next.reduce(list);
  const NoGradGuard off;
  const auto me = static_cast<size_t>(next.rank());
  // First the products D Q, and with them the values that are not compressed.
  std::vector<Matrix> matrices;
  std::vector<StageValues> first, second;
  for (size_t i = 0; i < list.size(); ++i) {
    const StageValues& v = list[i];
    const Shape s = shape_of(v.values.sizes());
    if (s.r == 0) {
      first.push_back(v);
      continue;
    }
    const auto found = memory_.find(v.name);
    Matrix x{i,  first.size(),
             s,  v.present_on[me],
             {}, found == memory_.end() ? Memory{} : found->second};
    const Tensor q = first_factor(v.name, s, x.next, next.step());
    Tensor p;
    if (x.mine) {
      const bool fed = x.next.error.defined() && x.next.error.sizes() == IntArrayRef({s.n, s.m});
      x.delta = v.values.view({s.n, s.m});
      if (fed) x.delta = x.delta + x.next.error;
      p = x.delta.matmul(q);
    } else {
      p = empty({s.n, s.r});
    }
    first.push_back({v.name + ".p", p.contiguous(), v.present_on});
    matrices.push_back(std::move(x));
  }
  next.reduce(first);
  if (matrices.empty()) return;

  std::vector<bool> finite;
  for (Matrix& x : matrices) {
    const StageValues& v = list[x.index];
    const Tensor& p = first[x.at].values;
    finite.push_back(orthonormalize(p) >= 0);
    Tensor r = x.mine ? x.delta.t().matmul(p).contiguous() : empty({x.shape.m, x.shape.r});
    if (x.mine && options_.error_feedback) x.next.error = x.delta - p.matmul(r.t());
    second.push_back({v.name + ".q", std::move(r), v.present_on});
  }
  next.reduce(second);

  for (size_t k = 0; k < matrices.size(); ++k) {
    Matrix& x = matrices[k];
    const StageValues& v = list[x.index];
    const Tensor& q = second[k].values;
    // All ranks see the same P and Q.
    if (!finite[k] || !q.isfinite().all().item<bool>()) {
      v.values.fill_(NAN);
      continue;
    }
    v.values.copy_(first[x.at].values.matmul(q.t()).view(v.values.sizes()));
    x.next.q = q;
    memory_[v.name] = std::move(x.next);
  }
}

}  // namespace

std::shared_ptr<CommStage> power_sgd_stage(const PowerSgdOptions& options) {
  return std::make_shared<PowerSgd>(options);
}

}  // namespace ramet::distributed
