#include "parallel/distributed/group/group_state_internal.h"

#include <optional>
#include <typeinfo>

#include "autograd/grad_mode.h"
#include "autograd/graph/function.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"

namespace ramet::distributed {

using detail::AbortNote;
using detail::Channel;
using detail::Header;

namespace {

[[noreturn]] void throw_error(CommError::Kind kind, int origin, std::vector<int> ranks,
                              const std::string& text) {
  switch (kind) {
    case CommError::Kind::mismatch: throw CommMismatch(kind, origin, std::move(ranks), text);
    case CommError::Kind::timeout: throw CommTimeout(kind, origin, std::move(ranks), text);
    case CommError::Kind::lost: throw CommLost(kind, origin, std::move(ranks), text);
    case CommError::Kind::aborted: break;
  }
  throw CommAborted(CommError::Kind::aborted, origin, std::move(ranks), text);
}

std::exception_ptr error_of(const AbortNote& note) {
  std::vector<int> ranks;
  for (int i = 0; i < 64; ++i)
    if (note.ranks >> i & 1) ranks.push_back(i);
  try {
    throw_error(static_cast<CommError::Kind>(note.kind), note.origin, std::move(ranks),
                std::string(note.text));
  } catch (...) { return std::current_exception(); }
}

// Note [Tags]
constexpr uint64_t kBesides = uint64_t{1} << 63;  // of send and recv

// The group of the operation that this thread runs.
thread_local const void* serving = nullptr;

uint64_t numbered(uint64_t n) {
  return n << detail::kRoundBits & ((uint64_t{1} << detail::kFingerprintAt) - 1);
}

}  // namespace

ProcessGroup::State::State(std::unique_ptr<detail::Engine> carrier, int my_rank, int ranks,
                           GroupOptions o)
    : engine(std::move(carrier)),
      rank(my_rank),
      size(ranks),
      options(std::move(o)),
      nccl(detail::asks_for_nccl(options.backend)),
      timeout_ms(options.timeout.count()),
      inbox_(*engine, rank, size) {
  if (std::string(engine->backend()) == "gloo")
    shared_memory = std::make_unique<detail::SharedMemory>(detail::shared_memory_wanted());
  helpers_->state = this;
  worker_ = std::thread([this] { serve(); });
}

ProcessGroup::State::~State() {
  bool busy;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    busy = !queue_.empty();
    for (const Side& s : messages_) busy = busy || !s.done;
    changed_.notify_all();
  }
  if (busy)
    abort(CommError::Kind::aborted, {rank},
          "[process_group] rank " + std::to_string(rank) + " left the group '" + options.name +
              "' with operations under way",
          /*wait=*/true);
  {
    std::unique_lock lock(helpers_->mutex);
    helpers_->state = nullptr;
    helpers_->left.wait(lock, [this] { return helpers_->inside == 0; });
  }
  worker_.join();
  for (Side& s : messages_) s.thread.join();
  // Without a failure, the destructors of the links wait a while for the other ranks, which may
  // still be receiving.
  if (failure()) abort_cards();
}

std::exception_ptr ProcessGroup::State::failure() const {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return failure_;
  }
  const auto note = engine->ended();
  if (!note) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error_of(*note);
  return failure_;
}

std::vector<OperationRecord> ProcessGroup::State::recent_operations() const {
  const std::lock_guard lock(mutex_);
  return ring_.records();
}

void ProcessGroup::State::check() const {
  if (const std::exception_ptr error = failure()) std::rethrow_exception(error);
}

void ProcessGroup::State::abort(CommError::Kind kind, const std::vector<int>& ranks,
                                const std::string& text, bool wait) {
  AbortNote note;
  note.kind = static_cast<uint32_t>(kind);
  note.origin = rank;
  for (int r : ranks)
    if (r >= 0 && r < 64) note.ranks |= uint64_t{1} << r;
  note.set_text(text);
  // Another rank's failure, of which this rank has not heard yet, came first.
  if (!failure()) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error_of(note);
  }
  engine->abort(note, wait);
}

Deadline ProcessGroup::State::waits_end(Milliseconds timeout, const Header& header) const {
  Milliseconds after = engine->telling_takes();
  if (header.over_cards) after += gpu::kLinkAbortTakes;
  return deadline_in(timeout - std::min(after, timeout / 4));
}

std::string ProcessGroup::State::place(const std::string& op_text) const {
  return "[process_group] group '" + options.name + "', rank " + std::to_string(rank) + ", " +
         op_text + ": ";
}

void ProcessGroup::State::tell(const detail::Failure& f, const std::string& op_text) {
  // The text of a mismatch names ranks and operations itself. Which rank detects it first is
  // chance, so that is not part of the text.
  const std::string where = f.kind == CommError::Kind::mismatch
                                ? "[process_group] group '" + options.name + "': "
                                : place(op_text);
  abort(f.kind, f.ranks, where + f.what, /*wait=*/true);
}

std::exception_ptr ProcessGroup::State::fail_with(const std::string& op_text) {
  try {
    throw;
  } catch (const detail::Failure& f) { tell(f, op_text); } catch (const detail::GroupEnded&) {
    // failure() has the reason
  } catch (const std::exception& e) {
    abort(CommError::Kind::aborted, {rank}, place(op_text) + e.what(), /*wait=*/true);
  } catch (...) {
    abort(CommError::Kind::aborted, {rank}, place(op_text) + "threw what is no std::exception",
          /*wait=*/true);
  }
  return failure();
}

Work ProcessGroup::State::start(detail::Task task) {
  autograd::note_meeting();
  const char* const op = name_of(task.header.op);
  capture::refuse(op, "ranks meet when it is called");
  RAMET_CHECK(serving != this, op, "called from within an operation of the group '", options.name,
              "', a communication stage's for example, and would wait for that: expected another "
              "group");
  check();
  begin_on_gpu(task.place, task.header);
  const Work work = Work::begun();
  Queued q{std::move(task), work};
  work.on_wait([helpers = helpers_](const Work& w) { helpers->help(w); });
  {
    const std::lock_guard lock(mutex_);
    RAMET_CHECK(!closing_, "process_group", "the group '", options.name, "' is being destroyed");
    q.task.header.sequence = ++sequence_;
    q.task.header.rank = rank;
    q.task.ticket = ring_.on_called(q.task.header);
    queue_.push_back(std::move(q));
  }
  changed_.notify_all();
  return work;
}

void ProcessGroup::State::serve() {
  const NoGradGuard off;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !serving_ && (closing_ || !queue_.empty()); });
    if (queue_.empty()) return;
    serve_one(lock);
  }
}

void ProcessGroup::State::serve_one(std::unique_lock<std::mutex>& lock) {
  serving_ = true;
  Queued& q = queue_.front();
  ring_.on_began(q.task.ticket);
  lock.unlock();
  const void* const outer = std::exchange(serving, this);
  const std::exception_ptr error = run(q.task);
  serving = outer;
  if (q.task.told && !error) q.task.told();
  lock.lock();
  ring_.on_ended(q.task.ticket, !error);
  const Work work = q.work;
  std::optional<Queued> done(std::move(q));
  queue_.pop_front();
  serving_ = false;
  if (closing_ || !queue_.empty()) changed_.notify_all();
  lock.unlock();
  // Destroy the operation and its tensors before the waiting threads go on: those may count
  // references, or destroy the group. Not under the lock: lent memory may have a deleter that calls
  // this group.
  done.reset();
  work.finish(error);
  lock.lock();
}

void ProcessGroup::State::Helpers::help(const Work& work) {
  State* s;
  {
    const std::lock_guard lock(mutex);
    if (!(s = state)) return;
    ++inside;
  }
  {
    const NoGradGuard off;
    const DeviceGuard here(Device(kCPU, 0));
    std::unique_lock lock(s->mutex_);
    while (!s->serving_ && !s->queue_.empty() && !work.is_completed()) s->serve_one(lock);
  }
  const std::lock_guard lock(mutex);
  if (--inside == 0) left.notify_all();
}

std::exception_ptr ProcessGroup::State::run(detail::Task& t) {
  if (const std::exception_ptr error = failure()) return error;
  try {
    const RecordScope scope("ProcessGroup");
    Channel channel(
        *engine, staging_, rank, size, numbered(t.header.sequence), waits_end(t.timeout, t.header),
        [&](const detail::Failure& f) { tell(f, t.header.text()); },
        &wire_bytes[static_cast<size_t>(t.header.op)]);
    channel.show(t.header, inbox_, numbered(t.header.sequence + 1), [&](int r, Header& h) {
      if (t.to_each) t.to_each(r, h);
    });
    channel.set_tensor_place(t.place);
    if (!t.header.over_cards) channel.wait_for_tensors();
    channel.share_memory(shared_memory.get());
    if (t.header.over_cards) channel.use_card(card_of_all(channel, t.place));
    if (t.run) t.run(channel);
    channel.headers();
    channel.close();
    return nullptr;
  } catch (...) {
    const std::exception_ptr error = fail_with(t.header.text());
    if (t.header.over_cards) abort_cards();
    return error;
  }
}

Work ProcessGroup::State::start(detail::Message message) {
  autograd::note_meeting();
  capture::refuse(message.sends ? "send" : "recv", "ranks meet when it is called");
  check();
  begin_on_gpu(message.place, message.header);
  const Work work = Work::begun();
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!closing_, "process_group", "the group '", options.name, "' is being destroyed");
  uint64_t& count =
      (message.sends ? sent_ : received_)[{message.peer, static_cast<int>(message.tag)}];
  message.header.sequence = ++count;
  message.header.rank = rank;
  message.ticket = ring_.on_called(message.header, message.peer, message.sends);
  ring_.on_began(message.ticket);
  message.tag = kBesides | message.tag << detail::kFingerprintAt | numbered(count);
  messages_.remove_if([](Side& s) {
    if (!s.done) return false;
    s.thread.join();
    return true;
  });
  Side& side = messages_.emplace_back();
  const auto ticket = message.ticket;
  try {
    side.thread = std::thread([this, &side, work, m = std::move(message)]() mutable {
      const NoGradGuard off;
      std::exception_ptr error;
      try {
        run(m);
        if (m.told) m.told();
      } catch (...) { error = fail_with(m.header.text()); }
      m.tensor = {}, m.told = nullptr;
      {
        const std::lock_guard done(mutex_);
        ring_.on_ended(m.ticket, !error);
      }
      side.done = true;
      work.finish(error);
    });
  } catch (const std::system_error& e) {
    messages_.pop_back();
    ring_.on_ended(ticket, false);
    --count;  // no message was sent: the next one gets its number
    fail("process_group", "a message of the group '", options.name, "' needs a thread: ", e.what());
  }
  return work;
}

void ProcessGroup::State::run(const detail::Message& m) {
  Channel channel(*engine, staging_, rank, size, m.tag, waits_end(m.timeout, m.header),
                  [&](const detail::Failure& f) { tell(f, m.header.text()); });
  channel.with_peer(m.peer);
  channel.set_tensor_place(m.place);
  if (!m.header.over_cards) channel.wait_for_tensors();
  const size_t bytes = m.tensor.bytes();
  const char* const late = m.sends ? "did not receive it" : "did not send it";
  if (m.sends) {
    // The receiver compares the headers before it asks for the data.
    channel.move({{m.peer, &m.header, sizeof(Header)}}, {}, late);
    wire_bytes[static_cast<size_t>(m.header.op)] += bytes;
    if (m.header.over_cards) return run_over_cards(channel, m, m.header);
    channel.move({{m.peer, m.tensor.data(channel), bytes}}, {}, late);
    return;
  }
  Header theirs;
  channel.move({}, {{m.peer, &theirs, sizeof(Header)}}, late);
  if (!theirs.agrees_with(m.header))
    throw detail::Failure{CommError::Kind::mismatch,
                          {std::min(rank, m.peer), std::max(rank, m.peer)},
                          "Detected mismatch between collectives on ranks. Rank " +
                              std::to_string(rank) + " receives " + m.header.text() +
                              ", but Rank " + std::to_string(m.peer) + " sends " + theirs.text()};
  if (m.header.over_cards) return run_over_cards(channel, m, theirs);
  const detail::Staging staging = channel.staging(bytes);
  channel.move({}, {{m.peer, staging.data(), bytes}}, late);
  m.tensor.write(channel, "recv", staging.data());
}

}  // namespace ramet::distributed
