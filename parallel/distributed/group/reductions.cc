// The operations that reduce.
#include <algorithm>
#include <optional>

#include "parallel/distributed/group/arguments_internal.h"

namespace ramet::distributed {

using detail::Channel;
using detail::CommonDevice;
using detail::Header;
using detail::Member;
using detail::Op;
using detail::Operand;
using detail::Reduction;
using detail::Staging;

namespace {

// The allocation that a tensor lies in.
const StorageImpl* root_of(const Tensor& t) {
  const StorageImpl* s = t.storage_impl();
  return s->memory_of ? s->memory_of : s;
}
// Is t a member of flat memory (Note [Flat stores]) with a storage of its own? Then no other
// tensor's data lies between t and the next member.
bool in_flat_memory(const Tensor& t) {
  const StorageImpl* s = t.storage_impl();
  return s->memory_of && s->data == t->data && s->bytes == t.nbytes();
}

// Calls run(first, last) for each range of chosen members. Members that are adjacent in memory
// share a range, if `adjacent`.
template <class F> void over_runs(const std::vector<bool>& chosen, bool adjacent, const F& run) {
  for (size_t first = 0; first < chosen.size();) {
    size_t last = first + 1;
    while (adjacent && last < chosen.size() && chosen[last] == chosen[first]) ++last;
    if (chosen[first]) run(first, last);
    first = last;
  }
}

}  // namespace

Work ProcessGroup::all_reduce(Tensor t, const CollectiveOptions& o) {
  const Operand x("all_reduce", "tensor", t);
  detail::Task task = task_of(*this, Op::all_reduce, o);
  task.header.set_shape(t);
  task.place.device = t.device();
  const Reduction reduction = reduction_of(*this, Op::all_reduce, o, t.scalar_type(), task.header);
  task.told = detail::told("all_reduce", t, t);
  task.run = [x, reduction, n = size()](Channel& c) {
    const auto all = [&] {
      return std::vector{Member{0, x.numel(), std::vector<bool>(static_cast<size_t>(n), true)}};
    };
    if (x.place() && x.tensor().is_cpu()) {
      detail::reduce_everywhere(c, reduction, x.place(), x.numel(), all, /*undo=*/true);
      return x.written("all_reduce");
    }
    const Staging copy = c.staging(x.bytes());
    x.read(c, copy.data());
    detail::reduce_everywhere(c, reduction, copy.data(), x.numel(), all, /*undo=*/false);
    x.write(c, "all_reduce", copy.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::reduce(Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("reduce", "tensor", t);
  detail::Task task = task_of(*this, Op::reduce, o, root);
  task.header.set_shape(t);
  task.place.device = t.device();
  const Reduction reduction = reduction_of(*this, Op::reduce, o, t.scalar_type(), task.header);
  task.told = detail::told("reduce", t, rank() == root ? ArrayRef<Tensor>(t) : ArrayRef<Tensor>());
  task.run = [x, reduction, root](Channel& c) {
    detail::reduce_to(c, reduction, x.data(c), x.numel(), root,
                      [&](const char* result) { x.write(c, "reduce", result); });
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_reduce_members(std::vector<Tensor> list, const CollectiveOptions& o,
                                      const std::vector<bool>& present, double note,
                                      std::shared_ptr<MemberReport> report) {
  constexpr const char* op = "all_reduce_members";
  RAMET_CHECK(!list.empty() && list.size() <= detail::kMaxMembers, op, "members: got ", list.size(),
              ", expected 1 to ", detail::kMaxMembers);
  RAMET_CHECK(present.empty() || present.size() == list.size(), op, "present: got ", present.size(),
              " entries for ", list.size(), " members");
  detail::Task task = task_of(*this, Op::all_reduce_members, o);
  Header& h = task.header;
  std::vector<Operand> members;
  const ScalarType dtype = list[0].defined() ? list[0].scalar_type() : kFloat;
  const auto item = static_cast<int64_t>(item_size(dtype));
  std::vector<int64_t> offsets;
  int64_t total = 0, end = 0;
  bool adjacent = true;  // may they be sent, or at least copied, as one piece?
  for (const Tensor& t : list) {
    members.emplace_back(op, "member", t);
    RAMET_CHECK(t.scalar_type() == dtype, op, "member ", members.size() - 1, ": got ", describe(t),
                ", expected the dtype of ", describe(list[0]));
    offsets.push_back(total);
    const char* place = members.back().place();
    adjacent = adjacent && place && root_of(t) == root_of(list[0]) &&
               place == members[0].place() + total * item &&
               (total == end || (in_flat_memory(t) && in_flat_memory(list[offsets.size() - 2])));
    end = total + t.numel();
    total += (t.numel() * item + 63) / 64 * 64 / item;
  }
  task.place.device = CommonDevice(op).add(members).device();
  h.set_members(o.name, list);
  h.elements = static_cast<uint64_t>(end);
  h.note = note;
  for (size_t i = 0; i < list.size(); ++i)
    if (present.empty() || present[i]) h.set_present(i);
  const Reduction reduction = reduction_of(*this, Op::all_reduce_members, o, dtype, h);

  const std::vector<bool> mine = present.empty() ? std::vector<bool>(list.size(), true) : present;
  task.told = detail::told("all_reduce", list, list);
  task.run = [=, undo = !o.undefined_on_failure, n = size()](Channel& c) {
    const auto bytes_of = [&](size_t first, size_t last) {
      const int64_t elements = offsets[last - 1] + members[last - 1].numel() - offsets[first];
      return static_cast<size_t>(elements * item);
    };
    // A GPU's members are copied to the memory that messages use; the host's only if necessary.
    const bool in_place = adjacent && members[0].tensor().is_cpu();
    std::optional<Staging> packed;
    if (!in_place) {
      packed.emplace(c.staging(static_cast<size_t>(end * item)));
      if (c.over_cards() && !adjacent) c.clear(packed->data(), end * item);
      over_runs(mine, adjacent, [&](size_t first, size_t last) {
        members[first].read(c, packed->data() + offsets[first] * item, bytes_of(first, last));
      });
    }
    char* const place = in_place ? members[0].place() : packed->data();
    std::vector<Member> plan;
    const auto someone = [&](size_t i) {
      return std::ranges::find(plan[i].present_on, true) != plan[i].present_on.end();
    };
    const auto make_plan = [&] {
      const std::vector<Header>& headers = c.headers();
      for (size_t i = 0; i < members.size(); ++i) {
        Member m{offsets[i], members[i].numel(), {}};
        for (int r = 0; r < n; ++r) m.present_on.push_back(headers[static_cast<size_t>(r)].has(i));
        plan.push_back(std::move(m));
      }
      if (report) *report = detail::report_of(headers, members.size());
      return plan;
    };
    detail::reduce_everywhere(c, reduction, place, end, make_plan, in_place && undo);
    std::vector<bool> there;
    for (size_t i = 0; i < members.size(); ++i) there.push_back(someone(i));
    if (!in_place && adjacent)
      over_runs(there, true, [&](size_t first, size_t last) {
        members[first].write(c, place + offsets[first] * item, bytes_of(first, last));
      });
    for (size_t i = 0; i < members.size(); ++i) {
      if (!there[i]) continue;
      if (adjacent) members[i].written(op);
      else members[i].write(c, op, place + offsets[i] * item);
    }
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::reduce_scatter(Tensor out, std::vector<Tensor> in, const CollectiveOptions& o) {
  const Operand y("reduce_scatter", "output", out);
  const auto inputs = operands(*this, Op::reduce_scatter, "input", in, &out);
  detail::Task task = task_of(*this, Op::reduce_scatter, o);
  task.header.set_shape(out);
  task.place.device = CommonDevice("reduce_scatter").add(y).add(inputs).device();
  const Reduction reduction =
      reduction_of(*this, Op::reduce_scatter, o, out.scalar_type(), task.header);
  task.told = detail::told("reduce_scatter", in, out);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    detail::Parts parts(c);
    std::vector<detail::Outgoing> sends;
    std::vector<const void*> at;
    for (int i = 0; i < n; ++i) {
      const Operand& x = inputs[static_cast<size_t>(i)];
      if (i == me) {
        at.push_back(x.data(c));
        continue;
      }
      parts.add(i, y.bytes());
      at.push_back(parts.memory.back().data());
      sends.push_back({i, x.data(c), x.bytes()});
    }
    const Staging result = c.staging(y.bytes());
    const detail::Combiner combine(c, reduction, y.numel());
    c.move(sends, parts.in);
    combine(result.data(), at, y.numel());
    y.write(c, "reduce_scatter", result.data());
  };
  return state_->start(std::move(task));
}

}  // namespace ramet::distributed
