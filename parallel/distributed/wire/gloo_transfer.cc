#include "parallel/distributed/wire/gloo_transfer_internal.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <system_error>
#include <utility>

namespace ramet::distributed::detail {
namespace {

// How often a long wait checks that its peer still exists.
constexpr Milliseconds kProbe(500);
constexpr Milliseconds kGrace(50);

}  // namespace

NoSigpipe::NoSigpipe() {
  sigset_t pending;
  sigemptyset(&set_);
  sigaddset(&set_, SIGPIPE);
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

NoSigpipe::~NoSigpipe() {
  if (!was_pending_) {
    const timespec now{};
    while (sigtimedwait(&set_, nullptr, &now) > 0) {}
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Watch::Watch() : thread_([this] { run(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::list<Watch::Waiter>::iterator Watch::enter(Buffer* buffer, bool sends, Deadline deadline,
                                                bool telling) {
  const std::lock_guard lock(mutex_);
  if (note_ && !telling) throw GroupEnded{*note_};
  waiters_.push_back({buffer, sends, deadline});
  busy_ = true;
  if (deadline < next_) changed_.notify_all();
  return std::prev(waiters_.end());
}

bool Watch::leave(std::list<Waiter>::iterator at) {
  const std::lock_guard lock(mutex_);
  const bool woken = at->woken;
  waiters_.erase(at);
  return woken;
}

bool Watch::end(const AbortNote& note) {
  const std::lock_guard lock(mutex_);
  if (note_) return false;
  note_ = note;
  ended_.notify_all();
  for (Waiter& w : waiters_) wake(w);
  return true;
}

std::optional<AbortNote> Watch::note(Milliseconds delay) {
  std::unique_lock lock(mutex_);
  // (Even a wait of zero time is a sleep: timers are tens of microseconds late.)
  if (delay.count() > 0) ended_.wait_for(lock, delay, [this] { return note_ || closing_; });
  return note_;
}

void Watch::wake(Waiter& w) {
  if (std::exchange(w.woken, true)) return;
  if (w.sends) w.buffer->abortWaitSend();
  else w.buffer->abortWaitRecv();
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    const Deadline now = std::chrono::steady_clock::now();
    // While operations come and go, checks again soon: then no operation needs to wake this thread.
    next_ = now + (std::exchange(busy_, false) ? kProbe / 2 : kNever);
    for (Waiter& w : waiters_) {
      if (w.deadline <= now) wake(w);
      else next_ = std::min(next_, w.deadline);
    }
    changed_.wait_until(lock, next_);
  }
}

Poster::Poster(std::shared_ptr<gloo::transport::tcp::Device> device)
    : device_(std::move(device)), fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  RAMET_CHECK(fd_ >= 0, "process_group", "eventfd: ", std::generic_category().message(errno));
  device_->registerDescriptor(fd_, EPOLLIN, this);
}

Poster::~Poster() {
  device_->unregisterDescriptor(fd_, this);  // after this, no handler runs any more
  ::close(fd_);
}

void Poster::post(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(f));
    if (queue_.size() > 1) return;  // the first function has woken the loop
  }
  eventfd_write(fd_, 1);
}

void Poster::handleEvents(int) {
  eventfd_t count;
  eventfd_read(fd_, &count);
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(queue_);
  }
  for (const auto& f : now) f();
}

// When a pair's connection breaks, Gloo notifies the pair's buffers, except the one that it was
// just reading into. A broken pair refuses a further message; on an intact pair the message waits
// unread.
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

namespace {

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
    // The wake-up at the deadline may come although the message has arrived, so this tries once
    // more. All messages of a round share the moment that this may take.
    return attempt(std::max(deadline + kGrace, deadline_in(Milliseconds(1))));
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
    // A rank that ended the group closes its connections after its note. The note may arrive a
    // moment later, and says more.
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

}  // namespace

TransferPtr gloo_transfer(Watch& watch, gloo::Context& context, Poster& poster, void* data,
                          size_t bytes, bool sends, int peer, uint64_t tag) {
  return std::make_unique<GlooTransfer>(watch, context, poster, data, bytes, sends, peer, tag);
}

}  // namespace ramet::distributed::detail
