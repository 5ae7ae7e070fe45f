// Every operation of LibTorch's process groups once, on each rank, against what the rank alone can
// compute: rank r brings ramp(r) = {r + 1, r + 2, r + 3}.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

namespace c10d_cases {

using Tensors = std::vector<torch::Tensor>;

inline torch::Tensor ramp(int64_t rank) { return torch::arange(3, torch::kFloat) + (rank + 1); }
inline std::vector<float> list(const torch::Tensor& t) {
  const torch::Tensor flat = t.detach().contiguous().to(torch::kFloat);
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}
/// For i = 0 to n-1: f(i).
inline std::vector<float> each(int64_t n, const std::function<double(int64_t)>& f) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(f(i)));
  return out;
}
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const c10::Error& e) { return e.what_without_backtrace(); }
  return "no error";
}

inline void reductions(c10d::ProcessGroup& pg) {
  const int r = pg.getRank(), n = pg.getSize();
  const double ranks = n * (n - 1) / 2.0;
  const auto reduced = [&](c10d::ReduceOp op) {
    Tensors t = {ramp(r)};
    c10d::AllreduceOptions options;
    options.reduceOp = op;
    EXPECT_TRUE(pg.allreduce(t, options)->wait());
    return list(t[0]);
  };
  const auto sum = [&](int64_t i) { return n * (i + 1) + ranks; };
  EXPECT_EQ(reduced(c10d::ReduceOp::SUM), each(3, sum));
  EXPECT_EQ(reduced(c10d::ReduceOp::AVG), each(3, [&](int64_t i) { return sum(i) / n; }));
  EXPECT_EQ(reduced(c10d::ReduceOp::MIN), each(3, [&](int64_t i) { return i + 1.0; }));
  EXPECT_EQ(reduced(c10d::ReduceOp::MAX), each(3, [&](int64_t i) { return i + n; }));
  EXPECT_EQ(reduced(c10d::ReduceOp::PRODUCT), each(3, [&](int64_t i) {
              double product = 1;
              for (int k = 0; k < n; ++k) product *= static_cast<double>(i + 1 + k);
              return product;
            }));

  Tensors two = {ramp(r), ramp(r) + 10};
  c10d::AllreduceCoalescedOptions coalesced;
  auto work = pg.allreduce_coalesced(two, coalesced);
  work->wait();
  EXPECT_EQ(list(two[0]), each(3, sum));
  EXPECT_EQ(list(two[1]), each(3, [&](int64_t i) { return sum(i) + 10 * n; }));
  EXPECT_EQ(work->result().size(), 2u);
  two = {ramp(r), ramp(r) * -1};
  coalesced.reduceOp = c10d::ReduceOp::MAX;
  pg.allreduce_coalesced(two, coalesced)->wait();
  EXPECT_EQ(list(two[0]), each(3, [&](int64_t i) { return i + n; }));
  EXPECT_EQ(list(two[1]), each(3, [&](int64_t i) { return -(i + 1.0); }));

  c10d::ReduceOptions to_last;
  to_last.rootRank = n - 1;
  Tensors t = {ramp(r)};
  pg.reduce(t, to_last)->wait();
  EXPECT_EQ(list(t[0]), r == n - 1 ? each(3, sum) : list(ramp(r)));

  // Part k of rank r's input is ramp(r) + 100 k: what comes out holds this rank's part.
  std::vector<Tensors> in(1);
  Tensors out = {torch::zeros({3})};
  for (int k = 0; k < n; ++k) in[0].push_back(ramp(r) + 100 * k);
  pg.reduce_scatter(out, in)->wait();
  const auto mine = [&](int64_t i) { return sum(i) + 100.0 * r * n; };
  EXPECT_EQ(list(out[0]), each(3, mine));
  torch::Tensor whole = torch::cat(in[0]), part = torch::zeros({3});
  pg.reduce_scatter_single(part, whole)->wait();
  EXPECT_EQ(list(part), each(3, mine));
  pg._reduce_scatter_base(part.zero_(), whole)->wait();
  EXPECT_EQ(list(part), each(3, mine));
}

inline void movements(c10d::ProcessGroup& pg) {
  const int r = pg.getRank(), n = pg.getSize();
  const auto of_all = [&](int64_t i) { return static_cast<double>(i % 3 + i / 3 + 1); };  // ramps

  c10d::BroadcastOptions from_last;
  from_last.rootRank = n - 1;
  Tensors t = {ramp(r).requires_grad_(true)};  // a parameter
  pg.broadcast(t, from_last)->wait();
  EXPECT_EQ(list(t[0]), list(ramp(n - 1)));

  std::vector<Tensors> rows(1);
  for (int k = 0; k < n; ++k) rows[0].push_back(torch::zeros({3}));
  t = {ramp(r)};
  pg.allgather(rows, t)->wait();
  EXPECT_EQ(list(torch::cat(rows[0])), each(3 * n, of_all));
  torch::Tensor all = torch::zeros({3 * n}), mine = ramp(r);
  pg.all_gather_single(all, mine)->wait();
  EXPECT_EQ(list(all), each(3 * n, of_all));
  pg._allgather_base(all.zero_(), mine)->wait();
  EXPECT_EQ(list(all), each(3 * n, of_all));

  std::vector<Tensors> by_rank;
  for (int k = 0; k < n; ++k) by_rank.push_back({torch::zeros({3}), torch::zeros({1})});
  t = {ramp(r), torch::full({1}, r, torch::kFloat)};
  pg.allgather_coalesced(by_rank, t)->wait();
  for (int k = 0; k < n; ++k) {
    EXPECT_EQ(list(by_rank[static_cast<size_t>(k)][0]), list(ramp(k)));
    EXPECT_EQ(list(by_rank[static_cast<size_t>(k)][1]), each(1, [&](int64_t) { return k; }));
  }

  const int root = n - 1;
  c10d::GatherOptions gathered;
  gathered.rootRank = root;
  std::vector<Tensors> received;
  if (r == root) received.push_back(Tensors());
  for (int k = 0; r == root && k < n; ++k) received[0].push_back(torch::zeros({3}));
  t = {ramp(r)};
  pg.gather(received, t, gathered)->wait();
  if (r == root) {
    EXPECT_EQ(list(torch::cat(received[0])), each(3 * n, of_all));
  }

  c10d::ScatterOptions scattered;
  scattered.rootRank = root;
  std::vector<Tensors> given;
  if (r == root) given.push_back(Tensors());
  for (int k = 0; r == root && k < n; ++k) given[0].push_back(ramp(7 * k));
  t = {torch::zeros({3})};
  pg.scatter(t, given, scattered)->wait();
  EXPECT_EQ(list(t[0]), list(ramp(7 * r)));

  // To rank k goes ramp(10 r + k).
  Tensors to, from;
  for (int k = 0; k < n; ++k) to.push_back(ramp(10 * r + k)), from.push_back(torch::zeros({3}));
  pg.alltoall(from, to)->wait();
  const auto exchanged = [&](int64_t i) {
    return i % 3 + 10.0 * static_cast<double>(i / 3) + r + 1;
  };
  EXPECT_EQ(list(torch::cat(from)), each(3 * n, exchanged));
  torch::Tensor in = torch::cat(to), out = torch::zeros({3 * n});
  std::vector<int64_t> equal, sizes, one_each(static_cast<size_t>(n), r + 1);
  pg.all_to_all_single(out, in, equal, equal)->wait();
  EXPECT_EQ(list(out), each(3 * n, exchanged));
  // Rank r sends r + 1 rows {r, r} to each.
  for (int k = 0; k < n; ++k) sizes.push_back(k + 1);
  in = torch::full({(r + 1) * n, 2}, r, torch::kFloat);
  out = torch::zeros({n * (n + 1) / 2, 2});
  pg.alltoall_base(out, in, sizes, one_each)->wait();
  std::vector<float> wanted;
  for (int k = 0; k < n; ++k) wanted.insert(wanted.end(), 2 * static_cast<size_t>(k + 1), k);
  EXPECT_EQ(list(out), wanted);

  if (n == 1) return;
  // Round the ring.
  Tensors sent = {ramp(r)}, came = {torch::zeros({3})};
  auto sending = pg.send(sent, (r + 1) % n, 5);
  auto receiving = pg.recv(came, (r + n - 1) % n, 5);
  receiving->wait();
  sending->wait();
  EXPECT_EQ(list(came[0]), list(ramp((r + n - 1) % n)));
  EXPECT_EQ(receiving->sourceRank(), (r + n - 1) % n);
  EXPECT_EQ(receiving->retrieveOpType(), c10d::OpType::RECV);
}

inline void handles_and_errors(c10d::ProcessGroup& pg) {
  const int r = pg.getRank(), n = pg.getSize();
  auto work = pg.barrier();
  EXPECT_TRUE(work->wait(std::chrono::seconds(60)));
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(work->isSuccess());
  EXPECT_EQ(work->exception(), nullptr);
  pg.monitoredBarrier();

  Tensors t = {ramp(r)}, two = {ramp(r), ramp(r)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::BAND;
  EXPECT_EQ(error_of([&] { (void)pg.allreduce(t, options); }),
            "[allreduce] reduceOp: got BAND, expected SUM, AVG, PRODUCT, MIN or MAX");
  EXPECT_EQ(error_of([&] { (void)pg.broadcast(two); }),
            "[broadcast] tensors: got a list of 2, expected one of 1: each rank has one device");
  EXPECT_EQ(error_of([&] { (void)work->sourceRank(); }),
            "[sourceRank] got an operation that is no recv");
  torch::Tensor out = torch::zeros({3 * n + 1}), in = ramp(r);
  if (n > 1) {
    EXPECT_EQ(error_of([&] { (void)pg.all_gather_single(out, in); }),
              "[all_gather_single] output: got " + std::to_string(3 * n + 1) +
                  " elements, expected a multiple of the group's size, " + std::to_string(n));
  }
  std::vector<Tensors> mine(1, two);
  c10d::GatherOptions to_other;
  to_other.rootRank = (r + 1) % n;
  if (n > 1) {
    EXPECT_EQ(error_of([&] { (void)pg.gather(mine, t, to_other); }),
              "[gather] outputs: got tensors on rank " + std::to_string(r) +
                  ", expected none but on rank " + std::to_string((r + 1) % n));
  }
}

inline void all(c10d::ProcessGroup& pg) {
  reductions(pg);
  movements(pg);
  handles_and_errors(pg);
}

}  // namespace c10d_cases
