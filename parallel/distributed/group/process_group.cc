#include "parallel/distributed/group/process_group.h"

#include "parallel/distributed/group/arguments_internal.h"

namespace ramet::distributed {

using detail::Channel;
using detail::CommonDevice;
using detail::Header;
using detail::Op;
using detail::Operand;
using detail::Parts;
using detail::Staging;

ProcessGroup::ProcessGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank() const { return state_->rank; }
int ProcessGroup::size() const { return state_->size; }
const std::string& ProcessGroup::name() const { return state_->options.name; }
const char* ProcessGroup::backend(DeviceType device) const {
  return device == kCUDA && state_->nccl ? "nccl" : state_->engine->backend();
}
Milliseconds ProcessGroup::timeout() const { return Milliseconds(state_->timeout_ms); }
const std::shared_ptr<Store>& ProcessGroup::store() const { return state_->store; }
void ProcessGroup::check() const { state_->check(); }

void ProcessGroup::set_timeout(Milliseconds timeout) {
  RAMET_CHECK(timeout.count() > 0, "set_timeout", "got ", timeout.count(),
              " ms, expected more than 0");
  state_->timeout_ms = timeout.count();
}

uint64_t ProcessGroup::wire_bytes(const std::string& operation) const {
  const auto op = detail::op_named(operation);
  if (op) return state_->wire_bytes[static_cast<size_t>(*op)];
  RAMET_CHECK(operation.empty(), "wire_bytes", "operation: got \"", operation,
              "\", expected \"all_reduce\", \"broadcast\", ...");
  uint64_t sum = 0;
  for (const auto& bytes : state_->wire_bytes) sum += bytes;
  return sum;
}

void ProcessGroup::reset_wire_bytes() {
  for (auto& bytes : state_->wire_bytes) bytes = 0;
  if (state_->shared_memory) state_->shared_memory->given = 0;
}

uint64_t ProcessGroup::shared_bytes() const {
  return state_->shared_memory ? state_->shared_memory->given.load() : 0;
}

void ProcessGroup::abort(const std::string& reason) {
  state_->abort(CommError::Kind::aborted, {},
                "[process_group] group '" + name() + "' aborted by rank " + std::to_string(rank()) +
                    ": " + reason,
                /*wait=*/false);
}

Work ProcessGroup::broadcast(Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("broadcast", "tensor", t);
  detail::Task task = task_of(*this, Op::broadcast, o, root);
  task.header.set_shape(t);
  task.place.device = t.device();
  task.told = rank() == root ? detail::told("broadcast", t, {}) : detail::told("broadcast", {}, t);
  task.run = [x, root, direct = o.undefined_on_failure](Channel& c) {
    detail::broadcast_from(c, root, c.rank() == root ? x.data(c) : nullptr, x.bytes(),
                           direct ? x.landing(c) : nullptr,
                           [&](const char* result) { x.write(c, "broadcast", result); });
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_gather(std::vector<Tensor> out, Tensor t, const CollectiveOptions& o) {
  const Operand x("all_gather", "tensor", t);
  const auto results = outputs(*this, Op::all_gather, out, &t);
  detail::Task task = task_of(*this, Op::all_gather, o);
  task.header.set_shape(t);
  task.place.device = CommonDevice("all_gather").add(x).add(results).device();
  task.told = detail::told("all_gather", t, out);
  task.run = [x, results, direct = o.undefined_on_failure, n = size(), me = rank()](Channel& c) {
    Parts parts(c);
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i) {
      if (i == me) continue;
      parts.add(i, x.bytes(), direct ? results[static_cast<size_t>(i)].landing(c) : nullptr);
      sends.push_back({i, x.data(c), x.bytes()});
    }
    c.move(sends, parts.in);
    results[static_cast<size_t>(me)].write(c, "all_gather", x.data(c));
    parts.write(c, "all_gather", results);
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::all_to_all(std::vector<Tensor> out, std::vector<Tensor> in,
                              const CollectiveOptions& o) {
  const auto inputs = operands(*this, Op::all_to_all, "input", in, nullptr);
  const auto results = outputs(*this, Op::all_to_all, out, nullptr);
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
  task.place.device = CommonDevice("all_to_all").add(inputs).add(results).device();
  task.to_each = [=](int r, Header& h) {
    h.gives = inputs[static_cast<size_t>(r)].bytes();
    h.wants = results[static_cast<size_t>(r)].bytes();
  };
  task.told = detail::told("all_to_all", in, out);
  task.run = [=, n = size()](Channel& c) {
    c.headers();  // needed first: sizes differ from pair to pair
    Parts parts(c);
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      if (k == mine) continue;
      parts.add(i, results[k].bytes());
      sends.push_back({i, inputs[k].data(c), inputs[k].bytes()});
    }
    c.move(sends, parts.in);
    // The inputs may be among the outputs.
    const Staging own = c.staging(inputs[mine].bytes());
    c.copy(own.data(), inputs[mine].data(c), inputs[mine].bytes());
    parts.write(c, "all_to_all", results);
    results[mine].write(c, "all_to_all", own.data());
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
  task.place.device = CommonDevice("scatter").add(y).add(inputs).device();
  task.told = detail::told("scatter", in, out);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    if (me != root) {
      Parts parts(c);
      parts.add(root, y.bytes());
      c.move({}, parts.in);
      return y.write(c, "scatter", parts.memory[0].data());
    }
    std::vector<detail::Outgoing> sends;
    for (int i = 0; i < n; ++i)
      if (i != me) sends.push_back({i, inputs[static_cast<size_t>(i)].data(c), y.bytes()});
    c.move(sends, {});
    y.write(c, "scatter", inputs[static_cast<size_t>(me)].data(c));
  };
  return state_->start(std::move(task));
}

Work ProcessGroup::gather(std::vector<Tensor> out, Tensor t, int root, const CollectiveOptions& o) {
  const Operand x("gather", "tensor", t);
  detail::Task task = task_of(*this, Op::gather, o, root);
  std::vector<Operand> results;
  if (rank() == root) results = outputs(*this, Op::gather, out, &t);
  else
    RAMET_CHECK(out.empty(), "gather", "requires empty output on non-root: got ", out.size(),
                " tensors");
  task.header.set_shape(t);
  task.place.device = CommonDevice("gather").add(x).add(results).device();
  task.told = detail::told("gather", t, out);
  task.run = [=, n = size(), me = rank()](Channel& c) {
    if (me != root) return c.move({{root, x.data(c), x.bytes()}}, {});
    Parts parts(c);
    for (int i = 0; i < n; ++i)
      if (i != me) parts.add(i, x.bytes());
    c.move({}, parts.in);
    results[static_cast<size_t>(me)].write(c, "gather", x.data(c));
    parts.write(c, "gather", results);
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
  // The operation owns this: the call may end with an exception while the operation goes on.
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
  m.tensor = x;
  m.place.device = t.device();
  return m;
}

}  // namespace

Work ProcessGroup::send(Tensor t, int to, int tag, const CollectiveOptions& o) {
  const Operand x("send", "tensor", t);
  detail::Message m = message_of(*this, "send", x, t, to, tag, o);
  m.sends = true;
  m.told = detail::told("send", t, {});
  return state_->start(std::move(m));
}

Work ProcessGroup::recv(Tensor t, int from, int tag, const CollectiveOptions& o) {
  const Operand x("recv", "tensor", t);
  detail::Message m = message_of(*this, "recv", x, t, from, tag, o);
  m.told = detail::told("recv", {}, t);
  return state_->start(std::move(m));
}

}  // namespace ramet::distributed
