// reduce_add and its coalesced form.
#include <algorithm>

#include "autograd/graph/graph_observer.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/comm.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/peers_internal.h"
#include "parallel/move/pieces_internal.h"
#include "runtime/tensor/storage_ref.h"

namespace ramet {
namespace parallel {
namespace {

static_assert(kMaxLeaves == kernels::kMaxSummands);

struct Sum {
  Tensor out;
  std::vector<Tensor> in;  // dense as `out`; undefined: absent
};

// A contribution in out's memory order and in `dtype`: itself, or a copy on its own device.
Tensor prepared(const Tensor& given, const Tensor& out, ScalarType dtype) {
  const Tensor t(given.steady());
  if (t.scalar_type() == dtype &&
      (same_strides(t, out) || (t.raw_contiguous() && out.raw_contiguous())))
    return t;
  Tensor c(TensorBase::empty_strided(out.sizes(), out.raw_strides(), dtype, t.device()));
  detail::count(detail::Count::kLaunches);
  detail::move(t.device(), {t}, {c}, [c, t] { autograd::copy_values(c, t); });
  return c;
}

// Forms all sums of one device and dtype as one movement, with one kernel call for neighbours.
void run_sums(const std::vector<Sum>& sums, ReduceOrder order) {
  const uint64_t begun = autograd::movement_begins();
  std::vector<nn::FlatRun> runs;
  std::vector<Tensor> reads, writes;
  if (sums.empty()) return;
  for (const Sum& s : sums) {
    if (s.out.numel() == 0) continue;
    std::vector<const TensorBase*> operands = {&s.out};
    for (const Tensor& t : s.in) {
      operands.push_back(t.defined() ? &t : nullptr);
      if (!t.defined()) continue;
      reads.push_back(t);
      detail::count_bytes(t->device, s.out->device, t.nbytes());
      if (t->device != s.out->device) detail::count(detail::Count::kTransfers);
    }
    writes.push_back(s.out);
    if (runs.empty() || !runs.back().extend_later(operands))
      runs.emplace_back().extend_later(operands);
  }
  if (runs.empty()) return;
  detail::count(detail::Count::kLaunches, runs.size());
  const Tensor& first = writes[0];
  std::vector<detail::PeerSum> calls;
  for (const nn::FlatRun& run : runs)
    calls.push_back(detail::peer_sum(run, first.scalar_type(), order));
  detail::move(first.device(), reads, writes, [calls, device = first.device()] {
    for (const detail::PeerSum& sum : calls) detail::run_sum(device, sum);
  });
  if (begun) autograd::tell_moved("reduce_add", reads, writes, begun);
}

// The number of leaves of a sum: contributions by position, padded to V for tree(V).
size_t leaves_of(const char* op, size_t inputs, ReduceOrder order) {
  RAMET_CHECK(inputs <= static_cast<size_t>(kMaxLeaves), op, "inputs: got ", inputs,
              ", expected at most ", kMaxLeaves);
  if (!order.is_tree()) return inputs;
  RAMET_CHECK(inputs <= static_cast<size_t>(order.leaves()), op, "inputs: got ", inputs,
              ", expected at most the ", order.leaves(), " leaves of the tree");
  return static_cast<size_t>(order.leaves());
}

void check_inputs(const char* op, ArrayRef<Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    RAMET_CHECK(inputs[i].defined(), op, "input ", i, " is undefined");
    RAMET_CHECK(same_sizes(inputs[i], inputs[0]), op, "input ", i, " has invalid size: got ",
                inputs[i].sizes(), ", but expected ", inputs[0].sizes());
    RAMET_CHECK(inputs[i].scalar_type() == inputs[0].scalar_type(), op, "input ", i,
                " has invalid dtype: got ", name_of(inputs[i].scalar_type()), ", but expected ",
                name_of(inputs[0].scalar_type()));
  }
}

// Sums floats in double. It makes copies, since no caller needs it to be fast.
void run_wide(const Tensor& out, const std::vector<Tensor>& in, ReduceOrder order) {
  const Tensor wide(
      TensorBase::empty_strided(out.sizes(), out.raw_strides(), kDouble, out.device()));
  Sum s{wide, {}};
  for (const Tensor& t : in) s.in.push_back(t.defined() ? prepared(t, wide, kDouble) : Tensor());
  run_sums({s}, order);
  detail::move(out.device(), {wide}, {out}, [out, wide] { autograd::copy_values(out, wide); });
}

}  // namespace

namespace detail {

void sum_into(const Tensor& out, const std::vector<Tensor>& in, ReduceOrder order) {
  Sum s{out, {}};
  for (const Tensor& t : in)
    s.in.push_back(t.defined() ? prepared(t, out, out.scalar_type()) : Tensor());
  run_sums({s}, order);
}

}  // namespace detail

namespace comm {

Tensor reduce_add(ArrayRef<Tensor> inputs, std::optional<Device> destination,
                  const ReduceOptions& options) {
  RAMET_CHECK(!inputs.empty(), "reduce_add", "got no inputs, expected at least one");
  check_inputs("reduce_add", inputs);
  const size_t leaves = leaves_of("reduce_add", inputs.size(), options.order);
  const Tensor& first = inputs[0];
  const Device to = detail::destination_of(first, destination);
  if (inputs.size() == 1 && options.may_alias && first.device() == to) return first;
  Tensor out = detail::empty_in_layout_of(first, first.sizes(), to);
  if (inputs.size() == 1) {
    detail::copy(out, first);
    return out;
  }
  std::vector<Tensor> in = inputs.vec();
  in.resize(leaves);
  if (options.wide && is_floating(first.scalar_type()) && first.scalar_type() != kDouble)
    run_wide(out, in, options.order);
  else detail::sum_into(out, in, options.order);
  return out;
}

std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                         std::optional<Device> destination, int64_t buffer_size,
                                         const ReduceOptions& options) {
  RAMET_CHECK(!inputs.empty(), "reduce_add_coalesced", "got no inputs, expected one list a device");
  const size_t tensors = inputs[0].size();
  for (size_t d = 0; d < inputs.size(); ++d) {
    RAMET_CHECK(inputs[d].size() == tensors, "reduce_add_coalesced", "list ", d, " has ",
                inputs[d].size(), " tensors, expected ", tensors);
    for (size_t i = 0; i < tensors; ++i) {
      const Tensor &t = inputs[d][i], &first = inputs[d][0];
      RAMET_CHECK(t.defined(), "reduce_add_coalesced", "tensor ", i, " of list ", d,
                  " is undefined");
      RAMET_CHECK(t.device() == first.device(), "reduce_add_coalesced", "tensor ", i, " of list ",
                  d, " is on ", t.device(), ", expected ", first.device(),
                  " as the first of its list");
    }
  }
  std::vector<BucketItem> items;
  std::vector<std::vector<Tensor>> columns(tensors);
  for (size_t i = 0; i < tensors; ++i) {
    for (const auto& row : inputs) columns[i].push_back(row[i]);
    check_inputs("reduce_add_coalesced", columns[i]);
    items.push_back({static_cast<int64_t>(columns[i][0].nbytes()), columns[i][0].scalar_type()});
  }
  std::vector<Tensor> out(tensors);
  if (tensors == 0) return out;
  const size_t leaves = leaves_of("reduce_add_coalesced", inputs.size(), options.order);
  const Device to = detail::destination_of(columns[0][0], destination);
  if (inputs.size() == 1 || options.wide) {
    for (size_t i = 0; i < tensors; ++i) out[i] = reduce_add(columns[i], to, options);
    return out;
  }
  for (const auto& group : plan_buckets(items, buffer_size)) {
    int64_t total = 0, at = 0;
    for (size_t i : group) total += nn::flat_padded(items[i].bytes);
    const Tensor flat = detail::flat_memory(total, to);
    std::vector<Sum> sums;
    for (size_t i : group) {
      const Tensor& first = columns[i][0];
      out[i] =
          Tensor(member_of(flat, at, first.sizes(),
                           detail::strides_in_layout_of(first, first.sizes()), items[i].dtype));
      at += nn::flat_padded(items[i].bytes);
      Sum s{out[i], {}};
      for (const Tensor& t : columns[i]) s.in.push_back(prepared(t, out[i], items[i].dtype));
      s.in.resize(leaves);
      sums.push_back(std::move(s));
    }
    run_sums(sums, options.order);
  }
  return out;
}

}  // namespace comm
}  // namespace parallel
}  // namespace ramet
