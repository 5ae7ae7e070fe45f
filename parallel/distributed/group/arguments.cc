#include "parallel/distributed/group/arguments_internal.h"

#include <algorithm>
#include <numeric>

#include "autograd/graph/graph_observer.h"
#include "parallel/distributed/group/caps_table_internal.h"
#include "runtime/observe/thread_local_state.h"

namespace ramet::distributed::detail {

std::function<void()> told(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to) {
  const uint64_t begun = autograd::movement_begins();
  if (RAMET_LIKELY(begun == 0)) return nullptr;
  return [kind, from = from.vec(), to = to.vec(), begun,
          caller = std::make_shared<const ThreadLocalState>()] {
    const ThreadLocalStateGuard as(*caller);
    autograd::tell_moved(kind, from, to, begun);
  };
}

Task task_of(const ProcessGroup& group, Op op, const CollectiveOptions& o, int root) {
  Task t;
  t.timeout = o.timeout.value_or(group.timeout());
  RAMET_CHECK(t.timeout.count() > 0, name_of(op), "timeout: got ", t.timeout.count(),
              " ms, expected more than 0");
  RAMET_CHECK(root >= -1 && root < group.size(), name_of(op), "invalid root rank: got ", root,
              ", expected 0 to ", group.size() - 1);
  t.header.op = op;
  t.header.root = root;
  t.header.set_name(o.name);
  return t;
}

Reduction reduction_of(const ProcessGroup& group, Op op, const CollectiveOptions& o,
                       ScalarType dtype, Header& h) {
  check_reduction(op, o.op, dtype);
  RAMET_CHECK(!o.order.is_tree() || o.order.leaves() >= group.size(), name_of(op),
              "order: got tree(", o.order.leaves(), "), expected at least as many leaves as the ",
              group.size(), " ranks");
  h.reduce = o.op;
  h.order = static_cast<uint8_t>(o.order.kind());
  h.leaves = static_cast<uint8_t>(o.order.leaves());
  return {o.op, o.order, dtype};
}

std::vector<Operand> operands(const ProcessGroup& group, Op op, const char* what,
                              const std::vector<Tensor>& list, const Tensor* alike) {
  RAMET_CHECK(list.size() == static_cast<size_t>(group.size()), name_of(op), what, ": got ",
              list.size(), " tensors, expected one for each of ", group.size(), " ranks");
  std::vector<Operand> out;
  for (size_t r = 0; r < list.size(); ++r) {
    out.emplace_back(name_of(op), what, list[r]);
    if (!alike) continue;
    RAMET_CHECK(list[r].scalar_type() == alike->scalar_type(), name_of(op),
                "invalid tensor type: ", what, " at index ", r, " is ", describe(list[r]),
                ", expected the dtype of ", describe(*alike));
    RAMET_CHECK(same_sizes(list[r], *alike), name_of(op), "invalid tensor size: ", what,
                " at index ", r, " is ", describe(list[r]), ", expected the sizes of ",
                describe(*alike));
  }
  return out;
}

std::vector<Operand> outputs(const ProcessGroup& group, Op op, const std::vector<Tensor>& list,
                             const Tensor* alike) {
  std::vector<Operand> out = operands(group, op, "output", list, alike);
  const auto begin = [&](size_t r) { return static_cast<const char*>(list[r]->data); };
  std::vector<size_t> order(list.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t r) { return list[r].numel() == 0; });
  std::ranges::sort(order, {}, [&](size_t r) { return std::pair(begin(r), r); });
  for (size_t i = 1; i < order.size(); ++i) {
    const size_t a = order[i - 1], b = order[i];
    const bool dense = out[a].place() && out[b].place();
    RAMET_CHECK(dense ? begin(a) + out[a].bytes() <= begin(b) : begin(a) != begin(b), name_of(op),
                "outputs: those at indices ", a, " and ", b,
                " share memory, expected memory of its own for each");
  }
  return out;
}

void Parts::add(int from, size_t bytes, char* landing) {
  if (!landing) memory.push_back(channel.staging(bytes));
  in.push_back({from, landing ? landing : memory.back().data(), bytes});
}

void Parts::write(Channel& c, const char* op, const std::vector<Operand>& out) const {
  for (const Incoming& i : in) out[static_cast<size_t>(i.from)].write(c, op, i.data);
}

MemberReport report_of(const std::vector<Header>& all, size_t members) {
  MemberReport report;
  for (const Header& h : all) report.notes.push_back(h.note);
  for (size_t i = 0; i < members; ++i)
    report.present.push_back(std::ranges::any_of(all, [&](const Header& h) { return h.has(i); }));
  return report;
}

}  // namespace ramet::distributed::detail
