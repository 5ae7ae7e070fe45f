// One message of Gloo and the wait for it: Note [Gloo as a carrier] in gloo_engine.cc.
#pragma once
#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"

namespace ramet::distributed::detail {

/// Gloo's own timeouts: they never fire.
inline constexpr Milliseconds kNever = kForever;
/// How long a rank with a broken connection waits for the note that gives the reason.
inline constexpr Milliseconds kNoteDelay(300);
inline constexpr uint64_t kNoteTag = ~uint64_t{0}, kProbeTag = kNoteTag - 1;

using Buffer = gloo::transport::UnboundBuffer;

/// Blocks SIGPIPE in this thread, and discards one that arrives in this time.
class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;

 private:
  sigset_t set_, before_;
  bool was_pending_;
};

/// The waits of one group, and what ends them.
class Watch {
 public:
  struct Waiter {
    Buffer* buffer;
    bool sends;
    Deadline deadline;
    bool woken = false;
  };

  Watch();
  ~Watch();

  /// Throws GroupEnded if the group has ended, except in waits that notify other ranks of it.
  std::list<Waiter>::iterator enter(Buffer* buffer, bool sends, Deadline deadline,
                                    bool telling = false);
  /// Returns whether the wait was woken.
  bool leave(std::list<Waiter>::iterator at);
  /// Returns false if the group has ended already.
  bool end(const AbortNote& note);
  /// Returns the note as soon as there is one; waits for at most `delay`.
  std::optional<AbortNote> note(Milliseconds delay = Milliseconds(0));

 private:
  static void wake(Waiter& w);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::list<Waiter> waiters_;
  std::optional<AbortNote> note_;
  Deadline next_ = Deadline::max();
  bool closing_ = false, busy_ = false;
  std::thread thread_;
};

/// Runs functions on Gloo's event loop.
class Poster final : public gloo::transport::tcp::Handler {
 public:
  explicit Poster(std::shared_ptr<gloo::transport::tcp::Device> device);
  ~Poster() override;
  Poster(const Poster&) = delete;
  void post(std::function<void()> f);

 private:
  void handleEvents(int) override;

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  const int fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

/// Throws GroupEnded or PeerLost if the connection to the peer is known to be broken.
void probe_peer(Watch& watch, gloo::Context& context, int peer);

/// A send or receive that the event loop begins.
TransferPtr gloo_transfer(Watch& watch, gloo::Context& context, Poster& poster, void* data,
                          size_t bytes, bool sends, int peer, uint64_t tag);

}  // namespace ramet::distributed::detail
