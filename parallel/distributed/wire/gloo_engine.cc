// Note [Gloo as a carrier]
// The engine uses only Gloo's unbound buffers. These are sends and receives that a tag matches, and
// the sender waits for the receiver. Gloo's own algorithms end with a closed context, and do not
// name the rank that failed. Collectives that are built on messages can first compare what all
// ranks are about to do.
//
// When a wait of Gloo times out, Gloo closes all connections, so that no other rank could get the
// reason. So Gloo's own timeouts never fire here. A watch thread wakes waits at their deadlines,
// and at the end of the group. Another thread waits for the note with which a rank ends the group.
// Gloo writes with writev(). Every thread that may write, its event loop included, blocks SIGPIPE.
// So a peer's death is an error, and does not kill this process.
//
// A connection is locked while a thread works on it. When Gloo's event loop finds it locked, it
// polls epoll without pause. If the locking thread is descheduled in a send, the loop wastes a
// whole time slice of a core. So the loop itself begins messages (Poster).
#include "parallel/distributed/wire/gloo_engine_internal.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/distributed/meet/meeting_internal.h"
#include "parallel/distributed/wire/gloo_transfer_internal.h"
#include "runtime/base/logging.h"

namespace ramet::distributed::detail {
namespace {

// How long a rank that ends the group waits until the others take its note, and how long if it
// should not wait. In the second case the others take it at once, or cannot be reached.
constexpr Milliseconds kTelling(1000), kAtHand(100);

// Adapts this library's store to Gloo's interface.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<distributed::Store> store, Deadline deadline)
      : store_(std::move(store)), deadline_(deadline) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(key, time_left(deadline_));
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    store_->wait(keys, time_left(deadline_));
  }
  void wait(const std::vector<std::string>& keys, const Milliseconds&) override { wait(keys); }

 private:
  std::shared_ptr<distributed::Store> store_;
  Deadline deadline_;
};

// A note that is being sent to all other ranks.
class Telling {
 public:
  Telling(gloo::Context& context, int rank, int size, const AbortNote& note) : note_(note) {
    for (int i = 0; i < size; ++i) {
      if (i == rank) continue;
      try {
        auto buffer = context.createUnboundBuffer(&note_, sizeof(note_));
        buffer->send(i, kNoteTag, 0, sizeof(note_));
        buffers_.push_back(std::move(buffer));
      } catch (const std::exception&) {  // its connection is broken, so it will detect the failure
      }
    }
  }

  // Returns false at the deadline, if some rank has not taken it.
  bool taken(Watch& watch, Deadline deadline) {
    for (; !buffers_.empty(); buffers_.pop_back()) {
      bool sent = true;
      const auto seat = watch.enter(buffers_.back().get(), true, deadline, /*telling=*/true);
      try {
        sent = buffers_.back()->waitSend(nullptr, kNever);
      } catch (const std::exception&) {}
      watch.leave(seat);
      if (!sent) return false;
    }
    return true;
  }

 private:
  AbortNote note_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

// One device for all groups of the process with the same address: a device has its own event loop.
std::shared_ptr<gloo::transport::Device> device_for(const std::string& address) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<gloo::transport::Device>> devices;
  const std::lock_guard lock(mutex);
  auto& kept = devices[address];
  if (auto d = kept.lock()) return d;
  gloo::transport::tcp::attr attr;
  attr.hostname = address;
  if (const char* iface = std::getenv("RAMET_SOCKET_IFNAME")) {
    attr.iface = iface;
    attr.hostname.clear();
  }
  const NoSigpipe quiet;  // the loop's thread inherits the blocked signal
  auto made = gloo::transport::tcp::CreateDevice(attr);
  kept = made;
  return made;
}

class GlooEngine final : public Engine {
 public:
  GlooEngine(const std::shared_ptr<distributed::Store>& store, int rank, int size,
             const std::string& address, Deadline deadline)
      : rank_(rank), size_(size) {
    const NoSigpipe quiet;
    meet(*store, rank, size, deadline);
    try {
      auto device = device_for(address);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      // Gloo waits five times as long for a connection.
      context->setTimeout(std::max(time_left(deadline) / 5, Milliseconds(200)));
      GlooStore in_between(store, deadline);
      context->connectFullMesh(in_between, device);
      context_ = std::move(context);
      poster_.emplace(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device));
    } catch (const Error&) { throw; } catch (const std::exception& e) {
      fail("process_group", "rank ", rank, " cannot connect to the other ranks over ",
           address.empty() ? "the address of the host's name" : address, ": ", e.what());
    }
    if (size_ > 1) listener_ = std::thread([this] { listen(); });
  }

  ~GlooEngine() override {
    if (teller_.joinable()) teller_.join();
    if (listener_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        going_.notify_all();
        if (note_buffer_) note_buffer_->abortWaitRecv();
      }
      listener_.join();
    }
    close();
  }

  const char* backend() const override { return "gloo"; }

  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    return start(const_cast<void*>(data), bytes, true, to, tag);
  }
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    return start(data, bytes, false, from, tag);
  }

  void abort(const AbortNote& note, bool wait) override {
    if (!watch_.end(note)) return;
    const NoSigpipe quiet;
    const auto telling = std::make_shared<Telling>(*context_, rank_, size_, note);
    const Deadline last = deadline_in(kTelling);
    if (telling->taken(watch_, wait ? last : deadline_in(kAtHand)) || wait) return close();
    const auto rest = [this, telling, last] {
      const NoSigpipe quiet;
      (void)telling->taken(watch_, last);
      close();
    };
    try {
      teller_ = std::thread(rest);
    } catch (const std::system_error&) { rest(); }
  }
  Milliseconds telling_takes() const override { return kTelling * 5 / 4; }
  void probe(int rank) override { probe_peer(watch_, *context_, rank); }
  std::optional<AbortNote> ended() const override { return watch_.note(); }

 private:
  TransferPtr start(void* data, size_t bytes, bool sends, int peer, uint64_t tag) {
    if (const auto note = watch_.note()) throw GroupEnded{*note};
    return gloo_transfer(watch_, *context_, *poster_, data, bytes, sends, peer, tag);
  }

  // Otherwise an abandoned, half-received message would keep Gloo's event loop busy for ever.
  void close() {
    const NoSigpipe quiet;
    try {
      context_->closeConnections();
    } catch (const std::exception& e) {
      log(LogLevel::Info, "[process_group] closing connections: ", e.what());
    }
  }

  // This rank's note may be one that other ranks still have to send on: gives them some time.
  void close_later() {
    std::unique_lock lock(mutex_);
    going_.wait_for(lock, 2 * kNoteDelay, [this] { return closing_.load(); });
    lock.unlock();
    close();
  }

  void listen() {
    const NoSigpipe quiet;
    std::vector<int> others;
    for (int i = 0; i < size_; ++i)
      if (i != rank_) others.push_back(i);
    // Also after the first note: a rank that sends one waits until it is taken.
    while (!closing_) {
      AbortNote note;
      try {
        Buffer* buffer = nullptr;
        {
          const std::lock_guard lock(mutex_);
          if (closing_) return;
          note_buffer_ = context_->createUnboundBuffer(&note, sizeof(note));
          buffer = note_buffer_.get();
        }
        buffer->recv(others, kNoteTag, 0, sizeof(note));
        if (buffer->waitRecv(nullptr, kNever) && watch_.end(note)) close_later();
      } catch (const std::exception& e) {
        log(LogLevel::Info, "[process_group] no more notes of other ranks: ", e.what());
        const std::lock_guard lock(mutex_);
        return note_buffer_.reset();
      }
      const std::lock_guard lock(mutex_);
      note_buffer_.reset();
    }
  }

  const int rank_, size_;
  std::shared_ptr<gloo::Context> context_;
  std::optional<Poster> poster_;
  mutable Watch watch_;
  std::mutex mutex_;
  std::unique_ptr<Buffer> note_buffer_;
  std::condition_variable going_;
  std::atomic<bool> closing_{false};
  std::thread listener_, teller_;
};

}  // namespace

std::unique_ptr<Engine> gloo_engine(const std::shared_ptr<Store>& store, int rank, int size,
                                    const std::string& address, Deadline deadline) {
  return std::make_unique<GlooEngine>(store, rank, size, address, deadline);
}

}  // namespace ramet::distributed::detail
