// Operations that never run, and the end of streams, captures and devices.
#include <algorithm>
#include <utility>

#include "tools/emulated_gpu/runtime/capture.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {

// Marks the operation as done although it has not run. Other streams of its meeting go on without
// it.
void Engine::forget_operation(Operation& operation) {
  operation.mark->done = true;
  operation.mark->stream = nullptr;
  if (!operation.meeting) return;
  const std::shared_ptr<Meeting> meeting = operation.meeting;
  for (CUstream_st* member : meeting->members)
    for (Operation& other : member->queue)
      if (other.meeting == meeting) {
        other.meeting = nullptr;
        other.work = nullptr;
      }
}

void Engine::give_up(const void* owner) {
  for (CUstream_st* stream : streams)
    for (Operation& operation : stream->queue) {
      if (operation.owner != owner || (stream->busy && &operation == &stream->queue.front()))
        continue;
      if (operation.meeting) std::erase(operation.meeting->members, stream);
      operation.work = std::move(operation.instead);
      operation.meeting = nullptr;
      operation.waits_for.clear();
      if (!std::exchange(operation.announced, false)) continue;
      const MarkPtr before = std::exchange(operation.mark, std::make_shared<Mark>());
      operation.mark->stream = stream;
      before->stream = nullptr;
      if (stream->last == before) stream->last = operation.mark;
    }
  changed.notify_all();
}

void Engine::remove_stream(CUstream_st* stream) {
  Device& device = *devices[static_cast<size_t>(stream->device)];
  device.gone_time = std::max(device.gone_time, stream->time);
  join_clocks(device.gone_clock, stream->clock);
  streams.erase(stream);
  delete stream;
}

void Engine::reset_device(Device& device, Lock& lock) {
  const auto busy = [&] {
    return std::any_of(streams.begin(), streams.end(), [&](const CUstream_st* stream) {
      return stream->device == device.id && stream->busy;
    });
  };
  while (busy()) changed.wait(lock);
  for (auto next = streams.begin(); next != streams.end();) {
    CUstream_st* stream = *next++;
    if (stream->device != device.id) continue;
    join_clocks(host_clock_, stream->clock);
    for (Operation& operation : stream->queue) forget_operation(operation);
    stream->queue.clear();
    if (stream->is_default) continue;
    if (stream->capture) end_capture(stream->capture);
    remove_stream(stream);
  }
  for (auto next = events.begin(); next != events.end();) {
    CUevent_st* event = *next++;
    if (event->device != device.id) continue;
    events.erase(event);
    delete event;
  }
  device.memory.release_all();
  device.enabled_peers.clear();
  device.pool_peers.clear();
  device.freed_in_order.clear();
  device.sticky = cudaSuccess;
  report.clear();
  changed.notify_all();
}

void Engine::end_capture(std::shared_ptr<Capture> capture) {
  capture->ended = true;
  for (const auto& [stream, tail] : capture->tails) stream->capture = nullptr;
  captures.erase(std::find(captures.begin(), captures.end(), capture));
}

}  // namespace ramet::emulated
