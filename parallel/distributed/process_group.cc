#include "parallel/distributed/process_group.h"

#include <algorithm>
#include <numeric>

#include "parallel/distributed/collectives_internal.h"
#include "parallel/distributed/gloo_engine_internal.h"
#include "parallel/distributed/group_state_internal.h"
#include "parallel/distributed/inproc_engine_internal.h"

namespace ramet::distributed {

using detail::Channel;
using detail::Header;
using detail::Member;
using detail::Op;
using detail::Operand;
using detail::Reduction;
using detail::Staging;

ProcessGroup::ProcessGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank() const { return state_->rank; }
int ProcessGroup::size() const { return state_->size; }
const std::string& ProcessGroup::name() const { return state_->options.name; }
const char* ProcessGroup::backend() const { return state_->engine->backend(); }
Milliseconds ProcessGroup::timeout() const { return Milliseconds(state_->timeout_ms); }
const std::shared_ptr<Store>& ProcessGroup::store() const { return state_->store; }
void ProcessGroup::check() const { state_->check(); }

void ProcessGroup::set_timeout(Milliseconds timeout) {
  RAMET_CHECK(timeout.count() > 0, "set_timeout", "got ", timeout.count(),
              " ms, expected more than 0");
  state_->timeout_ms = timeout.count();
}

uint64_t ProcessGroup::wire_bytes(const std::string& operation) const {
  uint64_t sum = 0;
  bool known = operation.empty();
  for (size_t i = 0; i < detail::kOps; ++i) {
    const bool asked = operation == detail::name_of(static_cast<Op>(i));
    known = known || asked;
    if (asked || operation.empty()) sum += state_->wire_bytes[i];
  }
  RAMET_CHECK(known, "wire_bytes", "operation: got \"", operation,
              "\", expected \"all_reduce\", \"broadcast\", ...");
  return sum;
}

void ProcessGroup::reset_wire_bytes() {
  for (auto& bytes : state_->wire_bytes) bytes = 0;
}

void ProcessGroup::abort(const std::string& reason) {
  state_->abort(CommError::Kind::aborted, {},
                "[process_group] group '" + name() + "' aborted by rank " + std::to_string(rank()) +
                    ": " + reason);
}

namespace {

// The parts of a header that every operation has.
detail::Task task_of(const ProcessGroup& group, Op op, const CollectiveOptions& o, int root = -1) {
  detail::Task t;
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
  RAMET_CHECK(o.op != ReduceOp::average || is_floating(dtype), name_of(op), "average: got ",
              short_name_of(dtype), ", expected a floating-point dtype");
  RAMET_CHECK(o.op <= ReduceOp::average || dtype != kBool, name_of(op),
              "got bool, expected a sum (\"or\") or numbers");
  RAMET_CHECK(!o.order.is_tree() || o.order.leaves() >= group.size(), name_of(op),
              "order: got tree(", o.order.leaves(), "), expected at least as many leaves as the ",
              group.size(), " ranks");
  h.reduce = o.op;
  h.order = static_cast<uint8_t>(o.order.kind());
  h.leaves = static_cast<uint8_t>(o.order.leaves());
  return {o.op, o.order, dtype};
}

// One tensor for each rank. Where `alike`, all of one shape and dtype.
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

// The allocation that a tensor lies in.
const Storage* root_of(const Tensor& t) {
  const Storage* s = t.storage_impl();
  return s->memory_of ? s->memory_of : s;
}
// Is t a member of flat memory (parallel/flat.h): alone in a storage of its own, so that nothing of
// anybody's lies between it and the next member?
bool in_flat_memory(const Tensor& t) {
  const Storage* s = t.storage_impl();
  return s->memory_of && s->data == t->data && s->bytes == t.nbytes();
}

// Every rank's part goes to memory of its own, and from there to the caller's.
struct Parts {
  const Channel& channel;
  std::vector<Staging> memory;
  std::vector<detail::Incoming> in;

  explicit Parts(const Channel& c) : channel(c) {}
  void add(int from, size_t bytes) {
    memory.push_back(channel.staging(bytes));
    in.push_back({from, memory.back().data(), bytes});
  }
  void write(const char* op, const std::vector<Operand>& out) const {
    for (const detail::Incoming& i : in) out[static_cast<size_t>(i.from)].write(op, i.data);
  }
};

}  // namespace

Work ProcessGroup::broadcast(Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("broadcast", "tensor", t);
  detail::Task task = task_of(*this, Op::broadcast, o, root);
  task.header.set_shape(t);
  task.run = [x, root](Channel& c) {
    detail::broadcast_from(c, root, x.data(), x.bytes(),
                           [&](const char* result) { x.write("broadcast", result); });
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_reduce(Tensor t, const CollectiveOptions& o) {
  const Operand x("all_reduce", "tensor", t);
  detail::Task task = task_of(*this, Op::all_reduce, o);
  task.header.set_shape(t);
  const Reduction reduction = reduction_of(*this, Op::all_reduce, o, t.scalar_type(), task.header);
  task.run = [x, reduction, n = size()](Channel& c) {
    const auto all = [&] {
      return std::vector{Member{0, x.numel(), std::vector<bool>(static_cast<size_t>(n), true)}};
    };
    if (x.place()) {
      detail::reduce_everywhere(c, reduction, x.place(), x.numel(), all, /*undo=*/true);
      return x.written("all_reduce");
    }
    const Staging copy = c.staging(x.bytes());
    if (x.bytes()) std::memcpy(copy.data(), x.data(), x.bytes());
    detail::reduce_everywhere(c, reduction, copy.data(), x.numel(), all, /*undo=*/false);
    x.write("all_reduce", copy.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::reduce(Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("reduce", "tensor", t);
  detail::Task task = task_of(*this, Op::reduce, o, root);
  task.header.set_shape(t);
  const Reduction reduction = reduction_of(*this, Op::reduce, o, t.scalar_type(), task.header);
  task.run = [x, reduction, root](Channel& c) {
    detail::reduce_to(c, reduction, x.data(), x.numel(), root,
                      [&](const char* result) { x.write("reduce", result); });
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
  RAMET_CHECK(o.op <= ReduceOp::average, op, "got a product, min or max, expected sum or average");
  detail::Task task = task_of(*this, Op::all_reduce_members, o);
  Header& h = task.header;
  std::vector<Operand> members;
  const ScalarType dtype = list[0].defined() ? list[0].scalar_type() : kFloat;
  const auto item = static_cast<int64_t>(item_size(dtype));
  std::vector<int64_t> offsets;
  int64_t total = 0, end = 0;
  bool adjacent = true;  // may the sum be formed where the members lie?
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
  h.set_members(o.name, list);
  h.elements = static_cast<uint64_t>(end);
  h.note = note;
  for (size_t i = 0; i < list.size(); ++i)
    if (present.empty() || present[i]) h.set_present(i);
  const Reduction reduction = reduction_of(*this, Op::all_reduce_members, o, dtype, h);

  const std::vector<bool> mine = present.empty() ? std::vector<bool>(list.size(), true) : present;
  task.run = [=, undo = !o.undefined_on_failure, n = size()](Channel& c) {
    std::optional<Staging> packed;
    if (!adjacent) {
      packed.emplace(c.staging(static_cast<size_t>(end * item)));
      for (size_t i = 0; i < members.size(); ++i)
        if (mine[i] && members[i].bytes())
          std::memcpy(packed->data() + offsets[i] * item, members[i].data(), members[i].bytes());
    }
    char* const place = adjacent ? members[0].place() : packed->data();
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
    detail::reduce_everywhere(c, reduction, place, end, make_plan, adjacent && undo);
    for (size_t i = 0; i < members.size(); ++i) {
      if (!someone(i)) continue;
      if (adjacent) members[i].written(op);
      else members[i].write(op, place + offsets[i] * item);
    }
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_gather(std::vector<Tensor> out, Tensor t, const CollectiveOptions& o) {
  const Operand x("all_gather", "tensor", t);
  const auto results = operands(*this, Op::all_gather, "output", out, &t);
  detail::Task task = task_of(*this, Op::all_gather, o);
  task.header.set_shape(t);
  task.run = [x, results, n = size(), me = rank()](Channel& c) {
    Parts parts(c);
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i) {
      if (i == me) continue;
      parts.add(i, x.bytes());
      sends.push_back({i, x.data(), x.bytes()});
    }
    c.move(sends, parts.in);
    parts.write("all_gather", results);
    results[static_cast<size_t>(me)].write("all_gather", x.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::reduce_scatter(Tensor out, std::vector<Tensor> in, const CollectiveOptions& o) {
  const Operand y("reduce_scatter", "output", out);
  const auto inputs = operands(*this, Op::reduce_scatter, "input", in, &out);
  detail::Task task = task_of(*this, Op::reduce_scatter, o);
  task.header.set_shape(out);
  const Reduction reduction =
      reduction_of(*this, Op::reduce_scatter, o, out.scalar_type(), task.header);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    Parts parts(c);
    std::vector<detail::Outgoing> sends;
    std::vector<const void*> at;
    for (int i = 0; i < n; ++i) {
      const Operand& x = inputs[static_cast<size_t>(i)];
      if (i == me) {
        at.push_back(x.data());
        continue;
      }
      parts.add(i, y.bytes());
      at.push_back(parts.memory.back().data());
      sends.push_back({i, x.data(), x.bytes()});
    }
    c.move(sends, parts.in);
    const Staging result = c.staging(y.bytes());
    reduction.combine(result.data(), at, y.numel());
    y.write("reduce_scatter", result.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_to_all(std::vector<Tensor> out, std::vector<Tensor> in,
                              const CollectiveOptions& o) {
  const auto inputs = operands(*this, Op::all_to_all, "input", in, nullptr);
  const auto results = operands(*this, Op::all_to_all, "output", out, nullptr);
  detail::Task task = task_of(*this, Op::all_to_all, o);
  const ScalarType dtype = inputs[0].dtype();
  for (const auto* list : {&inputs, &results})
    for (const Operand& x : *list)
      RAMET_CHECK(x.dtype() == dtype, "all_to_all", "invalid tensor type: got ",
                  describe(x.tensor()), ", expected ", short_name_of(dtype), " everywhere");
  const auto mine = static_cast<size_t>(rank());
  RAMET_CHECK(inputs[mine].bytes() == results[mine].bytes(), "all_to_all",
              "invalid tensor size: the output at this rank's own index ", rank(), " is ",
              describe(out[mine]), ", the input ", describe(in[mine]));
  task.header.dtype = static_cast<uint32_t>(dtype);
  task.to_each = [=](int r, Header& h) {
    h.gives = inputs[static_cast<size_t>(r)].bytes();
    h.wants = results[static_cast<size_t>(r)].bytes();
  };
  task.run = [=, n = size()](Channel& c) {
    c.headers();  // sizes differ from pair to pair
    Parts parts(c);
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      if (k == mine) continue;
      parts.add(i, results[k].bytes());
      sends.push_back({i, inputs[k].data(), inputs[k].bytes()});
    }
    c.move(sends, parts.in);
    // The inputs may be among the outputs.
    const Staging own = c.staging(inputs[mine].bytes());
    if (inputs[mine].bytes()) std::memcpy(own.data(), inputs[mine].data(), inputs[mine].bytes());
    parts.write("all_to_all", results);
    results[mine].write("all_to_all", own.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::scatter(Tensor out, std::vector<Tensor> in, int root,
                           const CollectiveOptions& o) {
  const Operand y("scatter", "output", out);
  detail::Task task = task_of(*this, Op::scatter, o, root);
  std::vector<Operand> inputs;
  if (rank() == root) inputs = operands(*this, Op::scatter, "input", in, &out);
  else
    RAMET_CHECK(in.empty(), "scatter", "requires empty input on non-root: got ", in.size(),
                " tensors");
  task.header.set_shape(out);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    if (me != root) {
      Parts parts(c);
      parts.add(root, y.bytes());
      c.move({}, parts.in);
      return y.write("scatter", parts.memory[0].data());
    }
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i)
      if (i != me) sends.push_back({i, inputs[static_cast<size_t>(i)].data(), y.bytes()});
    c.move(sends, {});
    y.write("scatter", inputs[static_cast<size_t>(me)].data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::gather(std::vector<Tensor> out, Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("gather", "tensor", t);
  detail::Task task = task_of(*this, Op::gather, o, root);
  std::vector<Operand> results;
  if (rank() == root) results = operands(*this, Op::gather, "output", out, &t);
  else
    RAMET_CHECK(out.empty(), "gather", "requires empty output on non-root: got ", out.size(),
                " tensors");
  task.header.set_shape(t);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    if (me != root) return c.move({{root, x.data(), x.bytes()}}, {});
    Parts parts(c);
    for (int i = 0; i < n; ++i)
      if (i != me) parts.add(i, x.bytes());
    c.move({}, parts.in);
    parts.write("gather", results);
    results[static_cast<size_t>(me)].write("gather", x.data());
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::barrier(const CollectiveOptions& o) {
  return state_->start(task_of(*this, Op::barrier, o));
}

std::vector<std::string> ProcessGroup::exchange(const std::string& mine,
                                                const CollectiveOptions& o) {
  detail::Task task = task_of(*this, Op::exchange, o);
  task.header.bytes = mine.size();
  // Kept by the operation: this call may end with an exception while it goes on.
  const auto all = std::make_shared<std::vector<std::string>>(static_cast<size_t>(size()));
  (*all)[static_cast<size_t>(rank())] = mine;
  task.run = [all, n = size(), me = rank()](Channel& c) {
    const std::vector<Header>& headers = c.headers();
    std::vector<detail::Outgoing> sends;
    std::vector<detail::Incoming> receives;
    const std::string& ours = (*all)[static_cast<size_t>(me)];
    for (int i = 0; i < n; ++i) {
      if (i == me) continue;
      std::string& theirs = (*all)[static_cast<size_t>(i)];
      theirs.resize(headers[static_cast<size_t>(i)].bytes);
      receives.push_back({i, theirs.data(), theirs.size()});
      sends.push_back({i, ours.data(), ours.size()});
    }
    c.move(sends, receives);
  };
  state_->start(std::move(task)).wait();
  return *all;
}

namespace {

detail::Message message_of(const ProcessGroup& group, const char* op, const Operand& x,
                           const Tensor& t, int peer, int tag, const CollectiveOptions& o) {
  RAMET_CHECK(peer >= 0 && peer < group.size() && peer != group.rank(), op, "rank: got ", peer,
              ", expected another rank of the ", group.size());
  RAMET_CHECK(tag >= 0 && tag <= 32767, op, "tag: got ", tag, ", expected 0 to 32767");
  detail::Message m;
  m.timeout = o.timeout.value_or(group.timeout());
  RAMET_CHECK(m.timeout.count() > 0, op, "timeout: got ", m.timeout.count(),
              " ms, expected more than 0");
  m.header.op = Op::send;
  m.header.set_shape(t);
  m.header.set_name(o.name);
  m.peer = peer;
  m.tag = static_cast<uint64_t>(tag);
  m.from = x.data();
  m.bytes = x.bytes();
  return m;
}

}  // namespace

Work ProcessGroup::send(Tensor t, int to, int tag, const CollectiveOptions& o) {
  const Operand x("send", "tensor", t);
  detail::Message m = message_of(*this, "send", x, t, to, tag, o);
  m.sends = true;
  m.commit = [x](const char*) {};  // keeps it alive
  return state_->start(std::move(m));
}

Work ProcessGroup::recv(Tensor t, int from, int tag, const CollectiveOptions& o) {
  const Operand x("recv", "tensor", t);
  detail::Message m = message_of(*this, "recv", x, t, from, tag, o);
  m.commit = [x](const char* result) { x.write("recv", result); };
  return state_->start(std::move(m));
}

// ---- making groups ------------------------------------------------------------------------------

class GroupMaker {
 public:
  /// Over a store that only this group's ranks use under its prefix. All of them are there when it
  /// returns.
  static std::shared_ptr<ProcessGroup> make(std::unique_ptr<detail::Engine> engine, int rank,
                                            int size, const GroupOptions& options,
                                            std::shared_ptr<Store> store, std::string address) {
    RAMET_CHECK(options.timeout.count() > 0, "process_group", "timeout: got ",
                options.timeout.count(), " ms, expected more than 0");
    auto state = std::make_unique<ProcessGroup::State>(std::move(engine), rank, size, options);
    state->store = std::move(store);
    state->address = std::move(address);
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(std::move(state)));
  }

  static std::shared_ptr<ProcessGroup> further(const ProcessGroup& of, const std::string& prefix,
                                               const std::vector<int>& ranks,
                                               const GroupOptions& options) {
    const ProcessGroup::State& s = *of.state_;
    const auto at = std::ranges::find(ranks, s.rank);
    const int rank = static_cast<int>(at - ranks.begin()), size = static_cast<int>(ranks.size());
    const auto store = std::make_shared<PrefixStore>(s.store, prefix);
    const Deadline deadline = deadline_in(options.timeout);
    std::unique_ptr<detail::Engine> engine;
    if (std::string(s.engine->backend()) == "inproc")
      engine = detail::join_inproc(*store, rank, size, deadline);
    else engine = detail::gloo_engine(store, rank, size, s.address, deadline);
    return make(std::move(engine), rank, size, options, store, s.address);
  }

  static void check_ranks(const char* op, const ProcessGroup& of, const std::vector<int>& ranks) {
    std::vector<int> sorted = ranks;
    std::ranges::sort(sorted);
    RAMET_CHECK(!ranks.empty() && sorted.front() >= 0 && sorted.back() < of.size() &&
                    std::ranges::adjacent_find(sorted) == sorted.end(),
                op, "ranks: got ", IntArrayRef(std::vector<int64_t>(ranks.begin(), ranks.end())),
                ", expected some of 0 to ", of.size() - 1, ", each once");
  }
};

namespace {
std::string joined(const std::vector<int>& ranks) {
  std::string out;
  for (int r : ranks) out += (out.empty() ? "" : ",") + std::to_string(r);
  return out;
}
}  // namespace

std::shared_ptr<ProcessGroup> ProcessGroup::subgroup(const std::vector<int>& ranks,
                                                     GroupOptions options) {
  GroupMaker::check_ranks("subgroup", *this, ranks);
  const std::string id = std::to_string(++state_->subgroups) + ":" + joined(ranks);
  barrier(CollectiveOptions("subgroup [" + joined(ranks) + "]")).wait();
  if (std::ranges::find(ranks, rank()) == ranks.end()) return nullptr;
  if (options.name == "world") options.name = "ranks " + joined(ranks) + " of " + name();
  return GroupMaker::further(*this, "subgroup/" + id, ranks, options);
}

std::shared_ptr<ProcessGroup> ProcessGroup::regroup(const std::vector<int>& survivors,
                                                    GroupOptions options) {
  GroupMaker::check_ranks("regroup", *this, survivors);
  RAMET_CHECK(std::ranges::find(survivors, rank()) != survivors.end(), "regroup", "got the ranks ",
              joined(survivors), ", expected this rank, ", rank(), ", to be one of them");
  const std::string id = std::to_string(++state_->regroups) + ":" + joined(survivors);
  return GroupMaker::further(*this, "regroup/" + id, survivors, options);
}

std::shared_ptr<ProcessGroup> make_group(const Rendezvous& r, const GroupOptions& options) {
  RAMET_CHECK(r.store, "make_group", "the rendezvous has no store");
  RAMET_CHECK(r.rank >= 0 && r.rank < r.world_size, "make_group", "rank: got ", r.rank,
              ", expected 0 to ", r.world_size - 1);
  // A second group of the same name does not meet the first one's keys.
  const int64_t number =
      r.store->add("groups/" + options.name + "/rank " + std::to_string(r.rank), 1);
  const auto store = std::make_shared<PrefixStore>(
      r.store, "group/" + options.name + "/" + std::to_string(number));
  auto engine =
      detail::gloo_engine(store, r.rank, r.world_size, r.address, deadline_in(options.timeout));
  return GroupMaker::make(std::move(engine), r.rank, r.world_size, options, store, r.address);
}

std::shared_ptr<ProcessGroup> init_process_group(const std::string& url,
                                                 const GroupOptions& options,
                                                 const RendezvousOptions& how) {
  return make_group(rendezvous(url, how), options);
}

std::vector<std::shared_ptr<ProcessGroup>> make_local_groups(int size,
                                                             const GroupOptions& options) {
  RAMET_CHECK(size > 0, "make_local_groups", "size: got ", size, ", expected at least 1");
  const auto store = std::make_shared<MemoryStore>();
  auto engines = detail::inproc_engines(size);
  std::vector<std::shared_ptr<ProcessGroup>> out;
  for (int i = 0; i < size; ++i)
    out.push_back(
        GroupMaker::make(std::move(engines[static_cast<size_t>(i)]), i, size, options, store, ""));
  return out;
}

}  // namespace ramet::distributed
