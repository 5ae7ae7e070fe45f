#include "runtime/cuda/host_copies.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/kept_memory.h"
#include "runtime/tensor/pinned.h"

namespace ramet {
namespace cuda {
namespace {

constexpr const char* kOp = "copy";

// The copies of one device in one direction. They run in the order of their numbers, so the event
// of a later copy also covers an earlier one. A ring of events is enough.
class Lane {
 public:
  // Around the queueing of a copy. A thread that waits for it wants the same stream, which may be
  // full.
  std::mutex queueing;
  // The copy stream is after all frees of turns before this one. Under `queueing`.
  uint64_t behind = 1;
  std::mutex mutex;  // of the rest; taken after `queueing`
  uint64_t copies = 0;

  /// Before a copy is queued: makes what mark() needs. REQUIRES: `queueing`.
  void prepare(int device) {
    if (ring_.size() != copies % kRing) return;
    EventHandle fresh(kOp, device);  // may wait for memory
    const std::lock_guard lock(mutex);
    ring_.push_back(std::move(fresh));
  }
  /// The last copy is queued: its number. REQUIRES: `queueing`.
  uint64_t mark(int device, cudaStream_t stream) {
    // No lock: the stream may be full, and other threads ask for events of earlier copies.
    RAMET_CUDA(kOp, device, cudaEventRecord(ring_[copies % kRing].get(), stream));
    const std::lock_guard lock(mutex);
    return ++copies;
  }
  cudaEvent_t event(uint64_t number) const { return ring_[(number - 1) % kRing].get(); }
  void forget() {
    const std::lock_guard lock(mutex);
    ring_.clear();
    copies = 0;
    behind = 1;
  }

 private:
  static constexpr size_t kRing = 64;
  std::vector<EventHandle> ring_;
};

// The content of a ticket.
struct Ticket {
  int device;
  Queue queue;
  uint64_t number;
};
constexpr int kQueueShift = 60, kDeviceShift = 56;
constexpr uint64_t kNumber = (uint64_t{1} << kDeviceShift) - 1;
uint64_t packed(const Ticket& t) {
  return gpu::kCopyTicket | static_cast<uint64_t>(t.queue) << kQueueShift |
         static_cast<uint64_t>(t.device) << kDeviceShift | t.number;
}
Ticket unpacked(uint64_t t) {
  return {static_cast<int>(t >> kDeviceShift & 0xf), static_cast<Queue>(t >> kQueueShift & 3),
          t & kNumber};
}

// One block of pinned memory.
struct Block {
  size_t size;
  // Its last copy in each lane. For copies into it, also the looks that they came after.
  struct Use {
    Ticket last;
    Looks looks;
  };
  std::vector<Use> uses = {};
  uint64_t owner = 0;  // number of the last owner
};

struct Shared {
  Lane in[kMaxDevicesPerType], out[kMaxDevicesPerType];
  std::mutex mutex;  // of the rest; taken after a lane's
  std::map<char*, Block> blocks;
  std::multimap<size_t, char*> free;
  size_t held = 0;
  uint64_t owners = 0;  // so far
};
Shared& shared() {  // never destroyed: see device_state.cc
  static auto* s = new Shared;
  return *s;
}
Lane& lane(const Ticket& t) {
  return (t.queue == Queue::kCopyIn ? shared().in : shared().out)[t.device];
}

// Null: the copy is done (it was before a shutdown()). The event may belong to a later copy when
// the caller uses it.
cudaEvent_t event_of(const Ticket& t) {
  Lane& of = lane(t);
  const std::lock_guard lock(of.mutex);
  return t.number > of.copies ? nullptr : of.event(t.number);
}

bool done(const Ticket& t) {
  const cudaEvent_t event = event_of(t);
  if (!event) return true;
  const CardGuard card(kOp, t.device);
  const cudaError_t code = cudaEventQuery(event);
  if (is_not_ready(code)) return false;
  RAMET_CUDA(kOp, t.device, code);
  return true;
}

// Orders `stream` of `device` after the copy.
void put_behind(const Ticket& t, int device, cudaStream_t stream) {
  const cudaEvent_t event = event_of(t);
  if (!event) return;
  const CardGuard card(kOp, device);
  RAMET_CUDA(kOp, device, cudaStreamWaitEvent(stream, event, 0));
}

// REQUIRES: shared().mutex. The block that holds this address.
Block* block_of(const void* memory) {
  auto& blocks = shared().blocks;
  const auto address = static_cast<char*>(const_cast<void*>(memory));
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin()) return nullptr;
  --at;
  return address < at->first + at->second.size ? &at->second : nullptr;
}
std::vector<Block::Use> uses_of(const void* memory) {
  const std::lock_guard lock(shared().mutex);
  const Block* block = block_of(memory);
  return block ? block->uses : std::vector<Block::Use>();
}
void note_use(const void* memory, const Block::Use& use) {
  const std::lock_guard lock(shared().mutex);
  Block* block = block_of(memory);
  if (!block) return;
  for (Block::Use& u : block->uses)
    if (u.last.device == use.last.device && u.last.queue == use.last.queue) {
      u = use;
      return;
    }
  block->uses.push_back(use);
}

bool idle(const Block& block) {
  return std::all_of(block.uses.begin(), block.uses.end(),
                     [](const Block::Use& use) { return done(use.last); });
}

// Takes free blocks that no copy uses any more from the list: at most `most`, of this size (0: of
// any). done() takes a lane's lock, so it is not called under the other lock.
std::vector<char*> take_idle(size_t size, size_t most) {
  Shared& s = shared();
  std::vector<std::pair<char*, Block>> candidates;
  {
    const std::lock_guard lock(s.mutex);
    for (const auto& [of_size, memory] : s.free)
      if (!size || of_size == size) candidates.emplace_back(memory, s.blocks.at(memory));
  }
  std::vector<char*> taken;
  for (const auto& [memory, block] : candidates) {
    if (taken.size() == most) break;
    if (!idle(block)) continue;
    const std::lock_guard lock(s.mutex);
    for (auto [at, end] = s.free.equal_range(block.size); at != end; ++at) {
      if (at->second != memory) continue;
      // Another thread may have taken it first, and given it back with a copy under way.
      Block& now = s.blocks.at(memory);
      if (now.owner != block.owner) break;
      s.free.erase(at);
      now.uses.clear();
      now.owner = ++s.owners;
      taken.push_back(memory);
      break;
    }
  }
  return taken;
}

class PinnedMemory final : public gpu::HostCopies {
 public:
  void* allocate(size_t bytes) override {
    constexpr const char* kPin = "pin_memory";
    const size_t size = pinned_block(bytes);
    if (const std::vector<char*> again = take_idle(size, 1); !again.empty()) return again[0];
    Shared& s = shared();
    std::optional<CardGuard> first;
    if (!use_any_card()) first.emplace(kPin, 0);
    void* memory = nullptr;
    cudaError_t code = cudaHostAlloc(&memory, size, cudaHostAllocPortable);
    if (code == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      if (!ComputeStreamGuard::captures()) empty_cache();
      code = cudaHostAlloc(&memory, size, cudaHostAllocPortable);
    }
    if (code == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      const std::lock_guard lock(s.mutex);
      throw OutOfMemoryError(detail::join("[pin_memory] out of pinned memory: got a request of ",
                                          bytes, " bytes, ", s.held, " bytes are held"));
    }
    RAMET_CUDA(kPin, -1, code);
    const std::lock_guard lock(s.mutex);
    s.blocks[static_cast<char*>(memory)] = {size, {}, ++s.owners};
    s.held += size;
    return memory;
  }

  void free(void* memory) noexcept override {
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    s.free.emplace(s.blocks.at(static_cast<char*>(memory)).size, static_cast<char*>(memory));
  }

  uint64_t copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                bool fresh) override {
    const bool in = from_device.is_cpu();
    const int device = (in ? to_device : from_device).index();
    const void* const host = in ? from : to;
    Ticket made{device, in ? Queue::kCopyIn : Queue::kCopyOut, 0};
    DeviceState& state = device_state(device, kOp);
    const CardGuard card(kOp, state);
    const cudaStream_t stream = state.stream(made.queue, kOp);
    // Two copies that only read the host's memory need no order.
    for (const Block::Use& use : uses_of(host))
      if (!in || use.last.queue == Queue::kCopyOut) put_behind(use.last, device, stream);
    Lane& mine = lane(made);
    const std::lock_guard together(mine.queueing);
    mine.prepare(device);
    CachingAllocator& memory = caching_allocator(device);
    if (!in || !fresh || memory.last_freed(to) >= mine.behind) {
      const uint64_t turn = memory.next_turn();
      state.order(Queue::kCompute, made.queue, kOp);
      mine.behind = turn;
    }
    const Looks looks = in ? Looks() : state.looks();
    RAMET_CUDA(kOp, device,
               cudaMemcpyAsync(to, from, bytes,
                               in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream));
    made.number = mine.mark(device, stream);
    note_use(host, {made, looks});
    return packed(made);
  }

  void order(uint64_t ticket) override {
    const Ticket t = unpacked(ticket);
    put_behind(t, t.device, device_state(t.device, kOp).stream(Queue::kCompute, kOp));
  }

  bool wait(const void* memory) override {
    const std::vector<Block::Use> uses = uses_of(memory);
    bool waited = false;
    for (const Block::Use& use : uses) {
      if (done(use.last)) continue;
      waited = true;
      const CardGuard card(kOp, use.last.device);
      RAMET_CUDA(kOp, use.last.device, cudaEventSynchronize(event_of(use.last)));
    }
    {
      const std::lock_guard lock(shared().mutex);
      if (Block* block = block_of(memory)) {
        auto& left = block->uses;
        const auto known = [&](const Block::Use& u) {
          return std::any_of(uses.begin(), uses.end(), [&](const Block::Use& w) {
            return w.last.device == u.last.device && w.last.queue == u.last.queue &&
                   w.last.number >= u.last.number;
          });
        };
        left.erase(std::remove_if(left.begin(), left.end(), known), left.end());
      }
    }
    for (const Block::Use& use : uses) raise_faults(use.looks);
    return waited;
  }

  void empty_cache() override {
    Shared& s = shared();
    (void)use_any_card();
    if (any_card_keeps_memory()) return;
    const std::vector<char*> going = take_idle(0, SIZE_MAX);
    {
      const std::lock_guard lock(s.mutex);
      for (char* memory : going) {
        s.held -= s.blocks.at(memory).size;
        s.blocks.erase(memory);
      }
    }
    for (char* memory : going) ignore(cudaFreeHost(memory));  // waits for all GPUs
  }
};

PinnedMemory& pinned_memory() {
  static PinnedMemory memory;
  return memory;
}

}  // namespace

size_t pinned_block(size_t bytes) {
  constexpr size_t kLeast = 512, kFine = size_t{1} << 20;
  if (bytes <= kFine) return std::max(kLeast, std::bit_ceil(bytes));
  const size_t step = std::bit_floor(bytes) / 8;
  return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

void* host_memory(const char* op, int device, size_t bytes) {
  const auto pin = [&](void** memory) {
    return cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
  };
  constexpr const char* kCall = "cudaHostAlloc";
  void* memory = nullptr;
  if (cudaError_t code = pin(&memory); RAMET_UNLIKELY(code != cudaSuccess)) {
    free_caches(code, op, kCall, device);
    pinned_memory().empty_cache();  // free_caches() throws in a capture
    code = pin(&memory);
    if (code != cudaSuccess) raise_again(code, op, kCall, device);
  }
  return memory;
}

void free_host_memory(void* memory) noexcept {
  if (memory && !any_card_keeps_memory()) ignore(cudaFreeHost(memory));
}

std::vector<EventHandle> marks_of_copies(const char* op, int device) {
  std::vector<EventHandle> marks;
  for (const Queue queue : {Queue::kCopyIn, Queue::kCopyOut}) {
    if (!event_of({device, queue, 1})) continue;  // there was none
    const CardGuard card(op, device);
    EventHandle& mark = marks.emplace_back(op, device);
    RAMET_CUDA(op, device, cudaEventRecord(mark.get(), device_state(device, op).stream(queue, op)));
  }
  return marks;
}

void forget_copies() {
  Shared& s = shared();
  for (int k = 0; k < kMaxDevicesPerType; ++k) s.in[k].forget(), s.out[k].forget();
  pinned_memory().empty_cache();
}

}  // namespace cuda

gpu::HostCopies* gpu::host_copies() { return &cuda::pinned_memory(); }

}  // namespace ramet
