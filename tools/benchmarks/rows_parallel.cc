// The parallel primitives next to the plain work that they replace. "one shard", "two shards": all
// on one device, so nothing is gained and the difference is the cost of replication. "two devices":
// one thread each, next to one device with one thread. "captured": a captured step, next to the
// eager one.
#include <array>
#include <memory>

#include "kernels/pointwise/nary_sum.h"
#include "ramet.h"
#include "tools/benchmarks/arms.h"
#include "tools/benchmarks/rows_data.h"

namespace {

using ramet::Tensor;
using ramet::nn::parallel::DataParallel;
using ramet::nn::parallel::DataParallelOptions;

constexpr int64_t kSum = 10770000;

Tensor filled(std::vector<int64_t> sizes, double scale, int seed) {
  Tensor t = ramet::empty(sizes);
  fill_row_data(t.data_ptr<float>(), t.numel(), scale, seed);
  return t;
}
int read(const Tensor& t, double* values, int room) {
  return sample_values(t.data_ptr<float>(), t.numel(), values, room);
}

// ---- sums of contributions ----

std::vector<Tensor> leaves;
void setup_sum() {
  leaves.clear();
  for (int i = 0; i < 4; ++i) leaves.push_back(filled({kSum}, 1, i));
}
template <bool kTree> void run_reduce_add(long times) {
  ramet::kernels::NarySumArgs k{};
  for (int i = 0; i < 4; ++i) k.in[i] = leaves[static_cast<size_t>(i)].data_ptr();
  k.out = leaves[0].data_ptr(), k.n = kSum, k.leaves = 4, k.dtype = ramet::kFloat, k.tree = kTree;
  for (long i = 0; i < times; ++i) ramet::kernels::nary_sum({leaves[0].device(), 0}, k);
}
void run_add_chain(long times) {
  const ramet::NoGradGuard off;
  for (long i = 0; i < times; ++i)
    for (size_t k = 1; k < 4; ++k) leaves[0].add_(leaves[k]);
}
int sum_values(double* values, int room) { return read(leaves[0], values, room); }
void clear_sum() { leaves.clear(); }

// ---- a training step ----

struct Job {
  ramet::nn::Sequential net{ramet::nn::Linear(784, 512), ramet::nn::ReLU(),
                            ramet::nn::Linear(512, 512), ramet::nn::ReLU(),
                            ramet::nn::Linear(512, 10)};
  std::unique_ptr<ramet::optim::SGD> sgd;
  std::unique_ptr<DataParallel<ramet::nn::Sequential>> parallel;
  Tensor images, labels;
  Job(int64_t batch, std::vector<ramet::Device> devices, int shards) {
    const ramet::NoGradGuard off;
    int seed = 30;
    for (Tensor& p : net->parameters())
      p.copy_(filled(p.sizes().vec(), p.dim() > 1 ? 0.05 : 0.1, seed++));
    sgd = std::make_unique<ramet::optim::SGD>(net->parameters(), ramet::optim::SGDOptions(1e-3));
    DataParallelOptions options(std::move(devices));
    if (shards > 1) options.order = ramet::parallel::ReduceOrder::tree(shards);
    parallel = std::make_unique<DataParallel<ramet::nn::Sequential>>(net, options);
    images = filled({batch, 784}, 1, 1);
    labels = ramet::arange(batch, ramet::kLong).remainder(10);
  }
};
std::unique_ptr<Job> job;
template <int kBatch, int kDevices, int kShards> void setup_step() {
  std::vector<ramet::Device> devices;
  for (int i = 0; i < kDevices; ++i) devices.push_back(ramet::Device(ramet::kCPU, i));
  job = std::make_unique<Job>(kBatch, devices, kShards);
}
template <class Forward> void steps(long times, Forward forward) {
  for (long i = 0; i < times; ++i) {
    job->sgd->zero_grad();
    forward();
    job->sgd->step();
  }
}
void run_parallel(long times) {
  steps(times, [] {
    ramet::nn::functional::cross_entropy((*job->parallel)(job->images), job->labels).backward();
  });
}
void run_plain(long times) {
  steps(times, [] {
    ramet::nn::functional::cross_entropy(job->net(job->images), job->labels).backward();
  });
}
// Half batches one after the other, their gradients added up by backward itself.
void run_halves(long times) {
  steps(times, [] {
    const auto x = job->images.chunk(2), y = job->labels.chunk(2);
    for (size_t k = 0; k < 2; ++k)
      (ramet::nn::functional::cross_entropy(job->net(x[k]), y[k]) * 0.5).backward();
  });
}
template <int kThreads, void (*Run)(long)> void with_threads(long times) {
  const int threads = ramet::get_num_threads();
  ramet::set_num_threads(kThreads);
  Run(times);
  ramet::set_num_threads(threads);
}
int step_values(double* values, int room) {
  int n = 0;
  for (const Tensor& p : job->net->parameters()) n += read(p.detach(), values + n, (room - n) / 2);
  return n;
}
void clear_step() { job.reset(); }

// ---- a captured step ----

// The small nets of the other rows, and one of MNIST's size.
struct Small {
  ramet::nn::Sequential net;
  ramet::optim::AdamW adam;
  Tensor x, y;
  ramet::Captured<std::function<void(const Tensor&, const Tensor&)>> captured;
  Small(int64_t batch, int64_t in, int64_t hidden, int64_t out)
      : net(ramet::nn::Linear(in, hidden), ramet::nn::Tanh(), ramet::nn::Linear(hidden, out)),
        adam(prepared(net), ramet::optim::AdamWOptions(1e-4)),
        x(filled({batch, in}, 1, 1)),
        y(filled({batch, out}, 1, 2)),
        captured([this](const Tensor& a, const Tensor& b) { step(a, b); }) {}
  static std::vector<Tensor> prepared(ramet::nn::Sequential& net) {
    const ramet::NoGradGuard off;
    int seed = 40;
    for (Tensor& p : net->parameters()) p.copy_(filled(p.sizes().vec(), 0.05, seed++));
    return net->parameters();
  }
  void step(const Tensor& a, const Tensor& b) {
    adam.zero_grad();
    ramet::mse_loss(net(a), b).backward();
    adam.step();
  }
};
std::unique_ptr<Small> small;
template <int kBatch, int kIn, int kHidden, int kOut> void setup_small() {
  small = std::make_unique<Small>(kBatch, kIn, kHidden, kOut);
}
template <bool kCaptured> void run_small(long times) {
  for (long i = 0; i < times; ++i) {
    if (kCaptured) small->captured(small->x, small->y);
    else small->step(small->x, small->y);
  }
}
int small_values(double* values, int room) {
  int n = 0;
  for (const Tensor& p : small->net->parameters())
    n += read(p.detach(), values + n, (room - n) / 2);
  return n;
}
void clear_small() { small.reset(); }

// clang-format off
#define RAMET_SMALL(name, inner, batch, in, hidden, out, captured) \
  {name, "us", 1e6, 0, inner, setup_small<batch, in, hidden, out>, run_small<captured>, small_values, clear_small}
#define RAMET_STEP(name, batch, devices, shards, run) \
  {name, "us", 1e6, 0, 3, setup_step<batch, devices, shards>, run, step_values, clear_step}
#define RAMET_SUM(name, run) {name, "ms", 1e3, 0, 1, setup_sum, run, sum_values, clear_sum}
#define RAMET_ROWS(sum, tree, one, two, apart, captured)    \
  RAMET_SUM("ReduceAdd 4 x 10.77M", sum),                   \
  RAMET_SUM("ReduceAdd 4 x 10.77M, tree", tree),            \
  RAMET_STEP("DP step b64, one shard", 64, 1, 1, one),      \
  RAMET_STEP("DP step b256, one shard", 256, 1, 1, one),    \
  RAMET_STEP("DP step b64, two shards", 64, 1, 2, two),     \
  RAMET_STEP("DP step b256, two shards", 256, 1, 2, two),   \
  RAMET_STEP("DP step b64, two devices", 64, 2, 1, apart),  \
  RAMET_STEP("DP step b256, two devices", 256, 2, 1, apart), \
  RAMET_SMALL("captured 8-32-1 b16 AdamW step", 1000, 16, 8, 32, 1, captured),      \
  RAMET_SMALL("captured 784-128-10 b64 AdamW step", 50, 64, 784, 128, 10, captured)
const BenchRow kParallel[] = {
    RAMET_ROWS(run_reduce_add<false>, run_reduce_add<true>, run_parallel, run_parallel, (with_threads<2, run_parallel>), true)};
const BenchRow kPlain[] = {
    RAMET_ROWS(run_add_chain, run_add_chain, run_plain, run_halves, (with_threads<1, run_plain>), false)};
// clang-format on
template <size_t N> BenchArm arm(const char* name, const BenchRow (&rows)[N], int threads) {
  ramet::set_num_threads(threads);
  return {name, rows, static_cast<int>(N)};
}

}  // namespace

BenchArm open_parallel_arm(int threads) { return arm("Ramet", kParallel, threads); }
BenchArm open_plain_arm(int threads) { return arm("plain", kPlain, threads); }
