// Note [Gloo as a carrier]
// Only Gloo's unbound buffers are used: sends and receives that are matched by a tag, where the
// sender waits for the receiver. Its algorithms end with a closed context and no word about the
// rank that is to blame; built on messages, every collective can first compare what all ranks are
// about to do.
//
// A wait of Gloo's that times out closes all connections, so that no other rank could be told why.
// So Gloo's own timeouts never fire here. A watch thread wakes waits at their deadlines, and at the
// end of the group; another thread waits for the note by which a rank tells the others that it
// ended the group. Gloo writes with writev(): every thread that may write, its event loop included,
// has SIGPIPE blocked, so that a peer's death is an error and not ours.
//
// A connection is locked while a thread works on it, and Gloo's event loop, when it finds it
// locked, asks epoll again and again: where the thread was descheduled in a send, for a whole time
// slice on a core that somebody needs. So messages are begun by the loop itself (Poster).
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/distributed/gloo_engine_internal.h"
#include "runtime/logging.h"

namespace ramet::distributed::detail {
namespace {

constexpr Milliseconds kNever = kForever;
constexpr Milliseconds kNoteDelay(300);
// How long a rank that ends the group waits for others to take its note.
constexpr Milliseconds kTelling(1000);
constexpr Milliseconds kProbe(500);
constexpr uint64_t kNoteTag = ~uint64_t{0}, kProbeTag = kNoteTag - 1;

// Blocks SIGPIPE in this thread, and takes away one that came meanwhile.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~NoSigpipe() {
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&set_, nullptr, &now) > 0) {}
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;

 private:
  sigset_t set_, before_;
  bool was_pending_;
};

// Our store as Gloo wants it.
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

using Buffer = gloo::transport::UnboundBuffer;

// The waits of one group and what ends them.
class Watch {
 public:
  struct Waiter {
    Buffer* buffer;
    bool sends;
    Deadline deadline;
    bool woken = false;
  };

  Watch() : thread_([this] { run(); }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  // Throws GroupEnded where the group has; but for those who tell others of it.
  std::list<Waiter>::iterator enter(Buffer* buffer, bool sends, Deadline deadline,
                                    bool telling = false) {
    const std::lock_guard lock(mutex_);
    if (note_ && !telling) throw GroupEnded{*note_};
    waiters_.push_back({buffer, sends, deadline});
    busy_ = true;
    if (deadline < next_) changed_.notify_all();
    return std::prev(waiters_.end());
  }
  bool leave(std::list<Waiter>::iterator at) {
    const std::lock_guard lock(mutex_);
    const bool woken = at->woken;
    waiters_.erase(at);
    return woken;
  }
  // False: it has ended already.
  bool end(const AbortNote& note) {
    const std::lock_guard lock(mutex_);
    if (note_) return false;
    note_ = note;
    ended_.notify_all();
    for (Waiter& w : waiters_) wake(w);
    return true;
  }
  // As soon as there is one, at most that much later.
  std::optional<AbortNote> note(Milliseconds delay = Milliseconds(0)) {
    std::unique_lock lock(mutex_);
    // (A wait that may not last is still a sleep: timers are tens of microseconds late.)
    if (delay.count() > 0) ended_.wait_for(lock, delay, [this] { return note_ || closing_; });
    return note_;
  }

 private:
  static void wake(Waiter& w) {
    if (std::exchange(w.woken, true)) return;
    if (w.sends) w.buffer->abortWaitSend();
    else w.buffer->abortWaitRecv();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
      const Deadline now = std::chrono::steady_clock::now();
      // Looks again soon where operations come and go: none has to wake it then.
      next_ = now + (std::exchange(busy_, false) ? kProbe / 2 : kNever);
      for (Waiter& w : waiters_) {
        if (w.deadline <= now) wake(w);
        else next_ = std::min(next_, w.deadline);
      }
      changed_.wait_until(lock, next_);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::list<Waiter> waiters_;
  std::optional<AbortNote> note_;
  Deadline next_ = Deadline::max();
  bool closing_ = false, busy_ = false;
  std::thread thread_;
};

// Runs things on Gloo's event loop.
class Poster final : public gloo::transport::tcp::Handler {
 public:
  explicit Poster(std::shared_ptr<gloo::transport::tcp::Device> device)
      : device_(std::move(device)), fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    RAMET_CHECK(fd_ >= 0, "process_group", "eventfd: ", std::generic_category().message(errno));
    device_->registerDescriptor(fd_, EPOLLIN, this);
  }
  ~Poster() override {
    device_->unregisterDescriptor(fd_, this);  // what runs has ended then
    ::close(fd_);
  }
  Poster(const Poster&) = delete;

  void post(std::function<void()> f) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(f));
      if (queue_.size() > 1) return;  // it has been woken for the first
    }
    eventfd_write(fd_, 1);
  }

 private:
  void handleEvents(int) override {
    eventfd_t count;
    eventfd_read(fd_, &count);
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard lock(mutex_);
      now.swap(queue_);
    }
    for (const auto& f : now) f();
  }

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  const int fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

// Gloo tells a pair's buffers that its connection broke, but for the one that it was just reading
// into. A further message on a broken pair is refused; on one that is whole it waits unread.
void probe_peer(Watch& watch, gloo::Context& context, int peer) {
  static char probed = 0;
  const NoSigpipe quiet;
  try {
    context.createUnboundBuffer(&probed, sizeof(probed))->send(peer, kProbeTag, 0, 1);
  } catch (const std::exception& e) {
    if (const auto note = watch.note(kNoteDelay)) throw GroupEnded{*note};
    throw PeerLost{peer, e.what()};
  }
}

class GlooTransfer final : public Transfer {
 public:
  GlooTransfer(Watch& watch, gloo::Context& context, Poster& poster, void* data, size_t bytes,
               bool sends, int peer, uint64_t tag)
      : watch_(watch),
        context_(context),
        begun_(std::make_shared<Begun>()),
        buffer_(context.createUnboundBuffer(data, bytes)),
        sends_(sends),
        peer_(peer) {
    poster.post([begun = begun_, buffer = buffer_.get(), sends, peer, tag, bytes] {
      const std::lock_guard lock(begun->mutex);
      if (begun->given_up) return;
      try {
        if (sends) buffer->send(peer, tag, 0, bytes);
        else buffer->recv(peer, tag, 0, bytes);
      } catch (const std::exception& e) {
        begun->error = e.what();
        if (sends) buffer->abortWaitSend();
        else buffer->abortWaitRecv();
      }
    });
  }
  ~GlooTransfer() override {
    const std::lock_guard lock(begun_->mutex);
    begun_->given_up = true;
  }

  bool wait(Deadline deadline) override {
    for (;;) {
      const Deadline soon = deadline_in(kProbe);
      if (attempt(std::min(deadline, soon))) return true;
      if (deadline <= soon) break;
      probe_peer(watch_, context_, peer_);
    }
    // The wake of a deadline may come although the message has: looked at once more.
    return attempt(deadline_in(Milliseconds(50)));
  }

 private:
  bool attempt(Deadline deadline) {
    if (done_) return true;
    const auto seat = watch_.enter(buffer_.get(), sends_, deadline);
    std::string why;
    try {
      done_ = sends_ ? buffer_->waitSend(nullptr, kNever) : buffer_->waitRecv(nullptr, kNever);
    } catch (const std::exception& e) { why = e.what(); }
    const bool woken = watch_.leave(seat);
    if (done_) return true;
    // A rank that ended the group closes its connections after its note: the note may be a moment
    // behind, and says more.
    if (why.empty()) {
      const std::lock_guard lock(begun_->mutex);
      why = begun_->error;
    }
    const bool broken = !woken || !why.empty();
    if (const auto note = watch_.note(broken ? kNoteDelay : Milliseconds(0)))
      throw GroupEnded{*note};
    if (broken) throw PeerLost{peer_, why};
    return false;
  }

  struct Begun {
    std::mutex mutex;
    bool given_up = false;
    std::string error;
  };
  Watch& watch_;
  gloo::Context& context_;
  const std::shared_ptr<Begun> begun_;
  std::unique_ptr<Buffer> buffer_;
  bool sends_, done_ = false;
  int peer_;
};

// One for all groups of the process and one address: it has an event loop of its own.
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
  const NoSigpipe quiet;  // the loop's thread is born with it
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

  void abort(const AbortNote& note) override {
    if (!watch_.end(note)) return;
    // Those that can be reached are told, and nobody waits for the others longer than this.
    const Deadline deadline = deadline_in(kTelling);
    const NoSigpipe quiet;
    std::vector<std::unique_ptr<Buffer>> telling;
    AbortNote told = note;
    for (int i = 0; i < size_; ++i) {
      if (i == rank_) continue;
      try {
        auto buffer = context_->createUnboundBuffer(&told, sizeof(told));
        buffer->send(i, kNoteTag, 0, sizeof(told));
        telling.push_back(std::move(buffer));
      } catch (const std::exception&) {  // its connection is broken: it will notice
      }
    }
    for (auto& buffer : telling) {
      const auto seat = watch_.enter(buffer.get(), true, deadline, /*telling=*/true);
      try {
        buffer->waitSend(nullptr, kNever);
      } catch (const std::exception&) {}
      watch_.leave(seat);
    }
    close();
  }
  Milliseconds telling_takes() const override { return kTelling * 5 / 4; }
  void probe(int rank) override { probe_peer(watch_, *context_, rank); }
  std::optional<AbortNote> ended() const override { return watch_.note(); }

 private:
  TransferPtr start(void* data, size_t bytes, bool sends, int peer, uint64_t tag) {
    if (const auto note = watch_.note()) throw GroupEnded{*note};
    return std::make_unique<GlooTransfer>(watch_, *context_, *poster_, data, bytes, sends, peer,
                                          tag);
  }

  // A message that was given up half received would keep Gloo's event loop busy for ever.
  void close() {
    const NoSigpipe quiet;
    try {
      context_->closeConnections();
    } catch (const std::exception& e) {
      log(LogLevel::Info, "[process_group] closing connections: ", e.what());
    }
  }

  // Ours may be the note that others are waiting to be rid of: some time for these.
  void close_later() {
    std::unique_lock lock(mutex_);
    going_.wait_for(lock, 2 * kNoteDelay, [this] { return closing_.load(); });
    lock.unlock();
    close();
  }

  void listen() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::vector<int> others;
    for (int i = 0; i < size_; ++i)
      if (i != rank_) others.push_back(i);
    // Also after the first note: whoever sends one waits until it was taken.
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
  std::thread listener_;
};

}  // namespace

std::unique_ptr<Engine> gloo_engine(const std::shared_ptr<Store>& store, int rank, int size,
                                    const std::string& address, Deadline deadline) {
  return std::make_unique<GlooEngine>(store, rank, size, address, deadline);
}

}  // namespace ramet::distributed::detail
