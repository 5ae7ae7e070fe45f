// The receiver copies a message once, from the sender's memory to its own.
#include "parallel/distributed/wire/inproc_engine_internal.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>

#include "parallel/distributed/meet/meeting_internal.h"

namespace ramet::distributed::detail {
namespace {

struct Message {
  const void* data;
  size_t bytes;
  enum { offered, copying, taken, withdrawn } state = offered;
};
using Key = std::tuple<int, int, uint64_t>;  // from, to, tag

struct Hub {
  explicit Hub(int size) : gone(static_cast<size_t>(size), false) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::shared_ptr<Message>> messages;
  std::optional<AbortNote> note;
  std::vector<bool> gone;  // its engine was destroyed

  // The caller holds the mutex.
  void check(int peer) const {
    if (note) throw GroupEnded{*note};
    if (gone[static_cast<size_t>(peer)]) throw PeerLost{peer, "it left the group"};
  }
};

class Send final : public Transfer {
 public:
  Send(std::shared_ptr<Hub> hub, Key key, const void* data, size_t bytes)
      : hub_(std::move(hub)), key_(key), message_(std::make_shared<Message>()) {
    message_->data = data;
    message_->bytes = bytes;
    const std::lock_guard lock(hub_->mutex);
    hub_->messages[key_] = message_;
    hub_->changed.notify_all();
  }
  ~Send() override {
    std::unique_lock lock(hub_->mutex);
    // The receiver is reading this rank's memory: the wait is short.
    hub_->changed.wait(lock, [this] { return message_->state != Message::copying; });
    if (message_->state == Message::offered) {
      message_->state = Message::withdrawn;
      hub_->messages.erase(key_);
    }
  }
  bool wait(Deadline deadline) override {
    std::unique_lock lock(hub_->mutex);
    const int peer = std::get<1>(key_);
    hub_->changed.wait_until(lock, deadline, [&] {
      return message_->state == Message::taken ||
             (message_->state != Message::copying &&
              (hub_->note || hub_->gone[static_cast<size_t>(peer)]));
    });
    if (message_->state == Message::taken) return true;
    hub_->check(peer);
    return false;
  }

 private:
  std::shared_ptr<Hub> hub_;
  Key key_;
  std::shared_ptr<Message> message_;
};

class Recv final : public Transfer {
 public:
  Recv(std::shared_ptr<Hub> hub, Key key, void* data, size_t bytes)
      : hub_(std::move(hub)), key_(key), data_(data), bytes_(bytes) {}
  bool wait(Deadline deadline) override {
    if (done_) return true;
    std::unique_lock lock(hub_->mutex);
    const int peer = std::get<0>(key_);
    auto found = hub_->messages.end();
    const auto is_there = [&] {
      found = hub_->messages.find(key_);
      return found != hub_->messages.end();
    };
    // Messages that were sent before their sender left can still be received.
    hub_->changed.wait_until(lock, deadline, [&] {
      return is_there() || hub_->note || hub_->gone[static_cast<size_t>(peer)];
    });
    if (hub_->note || !is_there()) {
      hub_->check(peer);
      return false;
    }
    const std::shared_ptr<Message> m = found->second;
    hub_->messages.erase(found);
    RAMET_CHECK(m->bytes <= bytes_, "process_group", "a message of ", m->bytes,
                " bytes where one of at most ", bytes_, " was expected");
    m->state = Message::copying;
    lock.unlock();
    if (m->bytes) std::memcpy(data_, m->data, m->bytes);
    lock.lock();
    m->state = Message::taken;
    done_ = true;
    hub_->changed.notify_all();
    return true;
  }

 private:
  std::shared_ptr<Hub> hub_;
  Key key_;
  void* data_;
  size_t bytes_;
  bool done_ = false;
};

class InprocEngine final : public Engine {
 public:
  InprocEngine(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~InprocEngine() override {
    const std::lock_guard lock(hub_->mutex);
    hub_->gone[static_cast<size_t>(rank_)] = true;
    hub_->changed.notify_all();
  }
  const char* backend() const override { return "inproc"; }
  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    return std::make_unique<Send>(hub_, Key(rank_, to, tag), data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    return std::make_unique<Recv>(hub_, Key(from, rank_, tag), data, bytes);
  }
  void abort(const AbortNote& note, bool /*wait*/) override {
    const std::lock_guard lock(hub_->mutex);
    if (!hub_->note) hub_->note = note;
    hub_->changed.notify_all();
  }
  void probe(int rank) override {
    const std::lock_guard lock(hub_->mutex);
    hub_->check(rank);
  }
  std::optional<AbortNote> ended() const override {
    const std::lock_guard lock(hub_->mutex);
    return hub_->note;
  }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Engine>> inproc_engines(int size) {
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Engine>> out;
  for (int i = 0; i < size; ++i) out.push_back(std::make_unique<InprocEngine>(hub, i));
  return out;
}

std::unique_ptr<Engine> join_inproc(Store& store, int rank, int size, Deadline deadline) {
  // Hubs that some of their ranks have not found yet, by number.
  static std::mutex mutex;
  static std::map<uint64_t, std::shared_ptr<Hub>> waiting;
  static uint64_t last = 0;
  std::shared_ptr<Hub> hub;
  struct Forget {  // removes the hub from `waiting`, met or not
    uint64_t number = 0;
    ~Forget() {
      const std::lock_guard lock(mutex);
      waiting.erase(number);
    }
  } forget;
  if (rank == 0) {
    const std::lock_guard lock(mutex);
    hub = waiting[forget.number = ++last] = std::make_shared<Hub>(size);
    store.set("hub", std::to_string(last));
  }
  const auto number = store.find("hub", deadline);
  RAMET_CHECK(number, "process_group", "Timeout: rank 0 of the new group did not come");
  if (!hub) {
    const std::lock_guard lock(mutex);
    const auto found = waiting.find(std::stoull(*number));
    RAMET_CHECK(found != waiting.end(), "process_group", "rank 0 of the new group has left");
    hub = found->second;
  }
  meet(store, rank, size, deadline);
  return std::make_unique<InprocEngine>(std::move(hub), rank);
}

}  // namespace ramet::distributed::detail
