#include "nn/module/shard_moments.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "runtime/devices/devices.h"

using ramet::detail::tls;

namespace ramet::nn {

ShardsElsewhere::~ShardsElsewhere() = default;

namespace detail {
namespace {

using autograd::Node;
using autograd::RawEdge;
using Elsewhere = std::shared_ptr<ShardsElsewhere>;
using Numbers = std::vector<double>;

Numbers numbers_of(const Tensor& t) {
  const Tensor host = t.detach().to(Device(kCPU, 0), kDouble).contiguous();
  const auto* first = static_cast<const double*>(host.ptr());
  return {first, first + host.numel()};
}

Tensor tensor_of(const Numbers& numbers, Device device) {
  return tensor(numbers, TensorOptions(kDouble)).to(device);
}

// The sum of the tensors of all shards, in the shards' order. `mine`: those of this process,
// double, on one device; undefined ones count as nothing. Undefined where no shard has a tensor.
Tensor sum_over_shards(const Elsewhere& elsewhere, const std::string& what,
                       const std::vector<Tensor>& mine) {
  Tensor sum;
  const auto add = [&sum](const Tensor& t) { sum = sum.defined() ? sum + t : t; };
  std::vector<Tensor> inputs;
  for (const Tensor& t : mine)
    if (t.defined()) inputs.push_back(t);
  if (!elsewhere) {
    for (const Tensor& t : inputs) add(t);
    return sum;
  }
  {
    const NoGradGuard off;
    std::vector<Numbers> rows;
    for (const Tensor& t : mine) rows.push_back(t.defined() ? numbers_of(t) : Numbers());
    for (const Numbers& row : elsewhere->gather(what, rows))
      if (!row.empty()) add(tensor_of(row, inputs.at(0).device()));
  }
  const bool wanted = std::any_of(inputs.begin(), inputs.end(),
                                  [](const Tensor& t) { return autograd::recording(t); });
  if (!wanted) return sum;
  return autograd::in_turn(autograd::record_list(
      "SumOverShardsBackward", inputs, std::move(sum),
      [elsewhere, what](const Node&, const Tensor& grad, std::vector<Tensor>& grads) {
        const Tensor all = sum_over_shards(elsewhere, what + " gradient", {grad});
        std::fill(grads.begin(), grads.end(), all);
      }));
}

// Slots and edges 2 i and 2 i + 1: mean and variance, or m2, of shard i of this process.
class MergeBackward final : public Node {
 public:
  MergeBackward(Elsewhere elsewhere, std::string what, const std::vector<ShardMoments>& shards,
                const MergedMoments& merged, Device home)
      : Node("MergeMomentsBackward", static_cast<int>(2 * shards.size()),
             static_cast<int>(2 * shards.size()), sizeof(MergeBackward)),
        elsewhere_(std::move(elsewhere)),
        what_(std::move(what)),
        merged_(merged.mean[0]),
        total_(merged.total) {
    for (const ShardMoments& s : shards) {
      edge_.push_back(autograd::edge_of(s.mean.impl()));
      edge_.push_back(autograd::edge_of(s.m2.impl()));
      mean_.push_back(autograd::save(s.mean));
      count_.push_back(s.count);
    }
    device = static_cast<uint8_t>(home.ordinal());
    flags |= elsewhere_ ? kSpans | kInTurn : kSpans;
    follow_edges();
  }
  ~MergeBackward() override {
    for (RawEdge& e : edge_) autograd::release(e.node);
  }
  RawEdge* edges() override { return edge_.data(); }
  void release_saved() override {
    flags |= kReleased;
    mean_.clear();
    merged_ = {};
  }

  void apply(Tensor* in, Tensor* out) override {
    if (RAMET_UNLIKELY((flags & kReleased) != 0)) autograd::backward_twice(*this);
    const Device home = Device::from_ordinal(device);
    const int64_t channels = mean_[0].get(*this).numel();
    const auto gradient = [&](const Tensor& g) {
      return g.defined() ? g.to(home, kDouble)
                         : zeros({channels}, TensorOptions(kDouble).device(home));
    };
    std::vector<Tensor> rows(mean_.size());
    for (size_t i = 0; i < rows.size(); ++i)
      if (in[2 * i].defined() || in[2 * i + 1].defined())
        rows[i] = cat({gradient(in[2 * i]), gradient(in[2 * i + 1])});
    // `any defined` is the condition to come here, so there is a sum.
    const Tensor sum = sum_over_shards(elsewhere_, what_ + " gradient", rows);
    const Tensor of_mean = sum.slice(0, 0, channels), of_var = sum.slice(0, channels, 2 * channels);
    const Tensor merged = merged_.get(*this).to(home, kDouble);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (count_[i] == 0) continue;  // it added nothing
      const Tensor& mean = mean_[i].get(*this);
      if (needs(static_cast<int>(2 * i))) {
        const Tensor away = mean.to(home, kDouble) - merged;
        out[2 * i] = ((of_mean + of_var * away * 2) * (count_[i] / total_))
                         .to(mean.device(), mean.scalar_type());
      }
      if (needs(static_cast<int>(2 * i + 1)))
        out[2 * i + 1] = (of_var * (1 / total_)).to(mean.device(), mean.scalar_type());
    }
  }

 private:
  std::vector<RawEdge> edge_;
  const Elsewhere elsewhere_;
  const std::string what_;
  std::vector<autograd::Saved> mean_;
  std::vector<double> count_;
  autograd::SavedOutput merged_;  // the mean that shard 0 got: slot 0
  const double total_;
};

// All shards' moments, in order, double and on one device.
std::vector<ShardMoments> all_shards(const Elsewhere& elsewhere, const std::string& what,
                                     const std::vector<ShardMoments>& mine, Device home) {
  std::vector<ShardMoments> all;
  if (!elsewhere) {
    for (const ShardMoments& s : mine)
      all.push_back({s.mean.detach().to(home, kDouble), s.m2.detach().to(home, kDouble), s.count});
    return all;
  }
  std::vector<Numbers> rows;
  for (const ShardMoments& s : mine) {
    Numbers& row = rows.emplace_back(1, s.count);
    for (const Tensor* t : {&s.mean, &s.m2}) {
      const Numbers values = numbers_of(*t);
      row.insert(row.end(), values.begin(), values.end());
    }
  }
  const auto channels = static_cast<size_t>(mine[0].mean.numel());
  for (const Numbers& row : elsewhere->gather(what, rows)) {
    if (row.empty()) continue;
    RAMET_CHECK(row.size() == 1 + 2 * channels, "BatchNorm", "statistics of another process: got ",
                row.size(), " numbers, expected ", 1 + 2 * channels);
    const auto at = [&](size_t i) { return row.begin() + static_cast<std::ptrdiff_t>(i); };
    all.push_back({tensor_of(Numbers(at(1), at(1 + channels)), home),
                   tensor_of(Numbers(at(1 + channels), row.end()), home), row[0]});
  }
  return all;
}

// A tensor of its own, also where nothing is to be changed.
Tensor copy_for(const Tensor& t, const Tensor& like) {
  const Tensor made = t.to(like.device(), like.scalar_type());
  return made.is_same(t) ? made.clone() : made;
}

}  // namespace

MergedMoments merge_moments_of_shards(const Elsewhere& elsewhere, const std::string& what,
                                      const std::vector<ShardMoments>& shards) {
  // Numbers of other processes come to the host, and in a backward the caller's thread receives
  // them. So no device's worker waits for another process.
  const Device home = elsewhere ? Device(kCPU, 0) : shards[0].mean.device();
  const DeviceGuard here(home);
  MergedMoments merged;
  {
    const NoGradGuard off;
    Tensor mean, m2;
    for (const ShardMoments& s : all_shards(elsewhere, what, shards, home)) {
      if (s.count == 0) continue;
      const double total = merged.total + s.count;
      if (merged.total == 0) {
        mean = s.mean;
        m2 = s.m2;
      } else {
        const Tensor delta = s.mean - mean;
        mean = mean + delta * (s.count / total);
        m2 = m2 + s.m2 + delta * delta * (merged.total * s.count / total);
      }
      merged.total = total;
    }
    if (merged.total == 0) mean = m2 = zeros_like(shards[0].mean).to(home);
    else m2 = m2 / merged.total;
    for (const ShardMoments& s : shards) {
      merged.mean.push_back(copy_for(mean, s.mean));
      merged.var.push_back(copy_for(m2, s.mean));
    }
  }
  const bool wanted = std::any_of(shards.begin(), shards.end(), [](const ShardMoments& s) {
    return autograd::recording(s.mean, s.m2);
  });
  if (!wanted || merged.total == 0) return merged;
  // Its number in the order is after its inputs', whichever thread came last.
  const ScopedValue<uint64_t> counter(tls.counter, 0);
  auto* node = autograd::new_node<MergeBackward>(elsewhere, what, shards, merged, home);
  const autograd::NodePtr held(node);
  autograd::release(node);
  for (size_t i = 0; i < shards.size(); ++i) {
    autograd::attach(merged.mean[i], node, static_cast<uint32_t>(2 * i));
    autograd::attach(merged.var[i], node, static_cast<uint32_t>(2 * i + 1));
  }
  if (RAMET_UNLIKELY(tls.watching)) {
    std::vector<autograd::Input> inputs, results;
    for (const ShardMoments& s : shards) inputs.insert(inputs.end(), {s.mean, s.m2});
    for (size_t i = 0; i < shards.size(); ++i)
      results.insert(results.end(), {merged.mean[i], merged.var[i]});
    autograd::tell_made(*node, inputs, results);
  }
  return merged;
}

}  // namespace detail
}  // namespace ramet::nn
