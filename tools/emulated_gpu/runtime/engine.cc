#include "tools/emulated_gpu/runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/runtime/capture.h"

namespace ramet::emulated {

thread_local CallerState this_thread;

namespace {

// Replaced by restart(); never destroyed, because a program may end while an executor waits.
std::atomic<Engine*> current_engine{nullptr};
std::mutex engine_mutex;

bool marks_done(const Operation& operation) {
  return std::all_of(operation.waits_for.begin(), operation.waits_for.end(),
                     [](const MarkPtr& mark) { return mark->done; });
}

}  // namespace

Engine& engine() {
  if (Engine* ready = current_engine.load(std::memory_order_acquire)) return *ready;
  std::lock_guard<std::mutex> lock(engine_mutex);
  if (!current_engine.load()) current_engine = new Engine;
  return *current_engine;
}

void restart(const Settings& next) {
  std::lock_guard<std::mutex> lock(engine_mutex);
  delete current_engine.exchange(nullptr);
  stop_workers();
  replace_settings(next);
  const bool bound = this_thread.bound;  // what else a thread keeps when devices begin again
  this_thread = {};
  this_thread.bound = bound;
}

Engine::Engine()
    : timeline(settings()),
      mode_(settings().streams),
      random_(88172645463325252ull + settings().stream_seed * 0x9e3779b97f4a7c15ull) {
  for (int i = 0; i < settings().usable_devices(); ++i) {
    devices.push_back(std::make_unique<Device>(i, settings().memory_of(i)));
    CUstream_st& stream = devices.back()->default_stream;
    stream.device = i;
    stream.is_default = true;
    stream.number = stream_count++;
    streams.insert(&stream);
  }
  expose_memory(false);
}

Engine::~Engine() {
  {
    Lock lock(mutex);
    stopping_ = true;
    changed.notify_all();
  }
  for (const auto& device : devices)
    if (device->executor.joinable()) device->executor.join();
  Lock lock(mutex);
  for (const auto& device : devices) reset_device(*device, lock);
  for (CUgraph_st* graph : graphs) delete graph;
  for (CUgraphExec_st* executable : executables) delete executable;
  for (const auto& [address, bytes] : pinned)
    if (checks().pinned) checks().pinned(reinterpret_cast<void*>(address), bytes, false);
}

CUstream_st* Engine::stream_of(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy)
    return &devices[static_cast<size_t>(this_thread.device)]->default_stream;
  return streams.count(handle) && !handle->destroyed ? handle : nullptr;
}

bool Engine::may_run(const CUstream_st* stream) const {
  if (stream->queue.empty() || stream->busy || !marks_done(stream->queue.front())) return false;
  const std::shared_ptr<Meeting>& meeting = stream->queue.front().meeting;
  if (!meeting) return true;
  if (static_cast<int>(meeting->members.size()) < meeting->count) return false;
  return std::all_of(meeting->members.begin(), meeting->members.end(), [&](CUstream_st* member) {
    return !member->busy && !member->queue.empty() && member->queue.front().meeting == meeting &&
           marks_done(member->queue.front());
  });
}

// The stream that must run next so that `stream` can go on; null where no stream helps.
CUstream_st* Engine::first_needed(CUstream_st* stream, int depth) const {
  // Deeper than any chain of streams: a cycle, which the caller's wait will report.
  if (depth > 256 || stream->queue.empty()) return nullptr;
  if (may_run(stream)) return stream;
  const Operation& operation = stream->queue.front();
  for (const MarkPtr& mark : operation.waits_for)
    if (!mark->done && mark->stream)
      if (CUstream_st* found = first_needed(mark->stream, depth + 1)) return found;
  if (operation.meeting)
    for (CUstream_st* member : operation.meeting->members)
      if (member != stream && !member->queue.empty())
        if (member->queue.front().meeting != operation.meeting ||
            !marks_done(member->queue.front()))
          if (CUstream_st* found = first_needed(member, depth + 1)) return found;
  return nullptr;
}

CUstream_st* Engine::pick(CUstream_st* target, int device) {
  if (mode_ == StreamMode::Lazy && target) return first_needed(target, 0);
  std::vector<CUstream_st*> ready;
  for (CUstream_st* stream : streams)
    if ((device < 0 || stream->device == device) && may_run(stream)) ready.push_back(stream);
  if (ready.empty()) return nullptr;
  // By number, not by address: the same seed gives the same order in every process.
  std::sort(ready.begin(), ready.end(),
            [](const CUstream_st* a, const CUstream_st* b) { return a->number < b->number; });
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return ready[(random_ >> 20) % ready.size()];
}

// Everything that is ordered before the operations at the heads of `members`.
VectorClock Engine::clock_of(const std::vector<CUstream_st*>& members) const {
  VectorClock clock;
  for (CUstream_st* member : members) {
    join_clocks(clock, member->clock);
    join_clocks(clock, member->queue.front().host);
    for (const MarkPtr& mark : member->queue.front().waits_for) join_clocks(clock, mark->clock);
  }
  for (CUstream_st* member : members) {
    if (clock.size() <= member->number) clock.resize(member->number + 1);
    clock[member->number] = ++member->operations;
  }
  return clock;
}

// While an object lives, the host can read and write device memory.
class Engine::OpenMemory {
 public:
  explicit OpenMemory(Engine& engine) : engine_(engine) {
    if (++engine_.open_ == 1) engine_.expose_memory(true);
  }
  ~OpenMemory() {
    if (--engine_.open_ == 0) engine_.expose_memory(false);
  }
  OpenMemory(const OpenMemory&) = delete;

 private:
  Engine& engine_;
};

void Engine::run(CUstream_st* stream, Lock& lock) {
  Operation& head = stream->queue.front();
  const std::shared_ptr<Meeting> meeting = head.meeting;
  const std::vector<CUstream_st*> members =
      meeting ? meeting->members : std::vector<CUstream_st*>{stream};
  std::function<void()> work = std::move(meeting ? meeting->work : head.work);
  const char* const what = head.what;
  const Transfer transfer = head.transfer;
  double start = 0;
  for (CUstream_st* member : members) {
    member->busy = true;
    const Operation& operation = member->queue.front();
    start = std::max({start, member->time, operation.enqueued});
    for (const MarkPtr& mark : operation.waits_for) start = std::max(start, mark->time);
  }
  const bool checked = checks().operation_begin != nullptr;
  VectorClock clock;
  if (checked) {
    clock = clock_of(members);
    for (CUstream_st* member : members) member->clock = member->queue.front().mark->clock = clock;
  }
  const uint32_t number = stream->number;
  const uint64_t operation_number = stream->operations;
  const bool dead = devices[static_cast<size_t>(stream->device)]->sticky.load() != cudaSuccess;
  ++running_;
  std::optional<OpenMemory> open(*this);
  lock.unlock();
  const auto began = std::chrono::steady_clock::now();
  if (work && !dead) {
    if (checked) checks().operation_begin(what, number, operation_number, clock);
    work();
    if (checked) checks().operation_end();
  }
  work = nullptr;  // what it holds may call CUDA when it goes: not under the lock
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  lock.lock();
  --running_;
  open.reset();
  const double end = timeline.end_of(transfer, start, took.count());
  for (CUstream_st* member : members) {
    Mark& mark = *member->queue.front().mark;
    mark.done = true;
    mark.time = member->time = end;
    mark.stream = nullptr;
    member->queue.pop_front();
    member->busy = false;
    if (member->destroyed && member->queue.empty()) remove_stream(member);
  }
  changed.notify_all();
}

void Engine::expose_memory(bool to_host) {
  if (!settings().guard_host) return;
  for (const auto& device : devices) device->memory.expose(to_host);
}

void Engine::host_saw(const Mark& mark) {
  timeline.host_waited(mark.time);
  if (checks().operation_begin) join_clocks(host_clock_, mark.clock);
}

cudaError_t Engine::wait(const MarkPtr& mark, Lock& lock, const char* who) {
  if (!mark) return cudaSuccess;
  // Idle time is counted in polls, not read from a clock: a machine that was suspended has not
  // waited.
  constexpr std::chrono::milliseconds kLook{20};
  const std::chrono::milliseconds timeout(settings().timeout_ms);
  std::chrono::milliseconds idle{0};
  // Opened once for all operations that this thread runs here: it costs as much as a small kernel.
  std::optional<OpenMemory> open;
  if (!mark->done && mode_ != StreamMode::Async) open.emplace(*this);
  while (!mark->done) {
    if (mode_ != StreamMode::Async) {
      if (CUstream_st* next = pick(mark->stream, -1)) {
        run(next, lock);
        idle = kLook * 0;
        continue;
      }
    }
    const bool told = changed.wait_for(lock, kLook) == std::cv_status::no_timeout;
    const bool alive =
        told || mark->done || running_ > 0 ||
        std::any_of(streams.begin(), streams.end(), [&](auto* stream) { return may_run(stream); });
    idle = alive ? kLook * 0 : idle + kLook;
    if (idle > timeout) {
      report = describe_deadlock(who);
      publish(report);
      return cudaErrorLaunchFailure;
    }
  }
  host_saw(*mark);
  return cudaSuccess;
}

cudaError_t Engine::wait_for_device(Device& device, Lock& lock, const char* who) {
  // The marks of the operations that are queued now: other threads may go on queueing.
  std::vector<MarkPtr> marks;
  for (const CUstream_st* stream : streams)
    if (stream->device == device.id && stream->last) marks.push_back(stream->last);
  for (const MarkPtr& mark : marks)
    if (const cudaError_t error = wait(mark, lock, who)) return error;
  timeline.host_waited(device.gone_time);
  join_clocks(host_clock_, device.gone_clock);
  return device.sticky.load();
}

bool Engine::poll(const MarkPtr& mark, Lock& lock) {
  if (!mark) return true;
  if (!mark->done && mode_ != StreamMode::Async)
    if (CUstream_st* next = pick(mark->stream, -1)) run(next, lock);
  if (mark->done) host_saw(*mark);
  return mark->done;
}

std::string Engine::describe_deadlock(const char* who) const {
  std::string text = "[emulated CUDA] STREAM DEADLOCK, nothing can run";
  if (who) text += std::string(" while ") + who + " waits for the device";
  text += ":";
  for (const CUstream_st* stream : streams) {
    if (stream->queue.empty()) continue;
    const Operation& head = stream->queue.front();
    text += "\n    cuda:" + std::to_string(stream->device) +
            (stream->is_default ? " default stream: " : " stream: ") +
            std::to_string(stream->queue.size()) + " operation(s), the first is " + head.what;
    if (head.meeting)
      text += " (" + std::to_string(head.meeting->members.size()) + " of " +
              std::to_string(head.meeting->count) + " members are there)";
  }
  return text;
}

void Engine::executor_loop(int device) {
  Lock lock(mutex);
  while (!stopping_) {
    if (CUstream_st* next = pick(nullptr, device)) run(next, lock);
    else changed.wait(lock);
  }
}

cudaError_t Engine::enqueue(CUstream_st* stream, Operation operation, Lock& lock) {
  if (stream->is_default) {
    for (const auto& capture : captures)
      if (capture->holds_blocking_stream_of(stream->device)) {
        capture->invalid = true;
        return cudaErrorStreamCaptureImplicit;
      }
  }
  if (stream->capture) return stream->capture->record(stream, std::move(operation));

  operation.announced = operation.mark != nullptr;
  if (!operation.announced) operation.mark = std::make_shared<Mark>();
  operation.mark->stream = stream;
  operation.enqueued = timeline.now();
  if (checks().operation_begin) operation.host = host_clock_;
  // The legacy default stream waits for all blocking streams of its device, and they for it. What
  // is done still counts: for the time (timeline.h) and for the checker.
  if (stream->is_default) {
    for (const CUstream_st* other : streams)
      if (other != stream && other->device == stream->device && other->blocking() && other->last)
        operation.waits_for.push_back(other->last);
  } else if (stream->blocking()) {
    const MarkPtr& last = devices[static_cast<size_t>(stream->device)]->default_stream.last;
    if (last) operation.waits_for.push_back(last);
  }
  stream->last = operation.mark;
  if (operation.meeting) operation.meeting->members.push_back(stream);
  stream->queue.push_back(std::move(operation));

  if (mode_ == StreamMode::Async) {
    Device& device = *devices[static_cast<size_t>(stream->device)];
    if (!device.executor.joinable())
      device.executor = std::thread([this, id = device.id] { executor_loop(id); });
    changed.notify_all();
  } else if (mode_ == StreamMode::Eager) {
    while (CUstream_st* next = pick(nullptr, -1)) run(next, lock);
  }
  return cudaSuccess;
}

bool Engine::find(const void* address, Allocation* allocation) const {
  for (const auto& device : devices)
    if (device->memory.find(address, allocation)) return true;
  return false;
}

bool Engine::is_pinned(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin()) return false;
  --next;
  return at < next->first + next->second;
}

}  // namespace ramet::emulated
