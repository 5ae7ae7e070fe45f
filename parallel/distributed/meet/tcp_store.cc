// Note [The store's protocol]
// A connection begins with a frame that identifies the client. The answer is empty, or gives the
// reason of a refusal. Then requests and answers alternate. A request is an operation, a key and
// further values; an answer is a status and a value. Each connection has a server thread, so a wait
// for a key blocks no other client. Numbers are 64 bits in the machine's byte order: all ranks of a
// run use the same kind of machine.
//
// Note [Ranks that come late]
// If a rank cannot belong to the run, the store fails for all ranks with the reason. Waiting ranks
// get it at once, rank 0 among them. Rank 0's server must outlive its own error. Otherwise later
// ranks would find no server and could only report a timeout. So if ranks have still to get the
// error, rendezvous() hands the server to a thread (lingering_store.cc) and throws. A new server at
// the same port ends the old one. So does the end of the process, two seconds later.
//
// A rank that has left may come again, to meet the others anew at the same address. It may find the
// previous store, which rank 0 has not left yet. Then the server asks it to come later.
#include "parallel/distributed/meet/tcp_store.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <random>
#include <set>
#include <thread>

#include "parallel/distributed/meet/socket_internal.h"
#include "runtime/base/config.h"

namespace ramet::distributed {

using detail::Packer;
using detail::Socket;
using detail::Unpacker;

namespace {

constexpr uint64_t kMagic = 0x3165726f74536d52;  // "RmStore1"
// The longest time that a healthy server needs to answer without a wait, or a client to send a
// request.
constexpr Milliseconds kPatience = std::chrono::seconds(30);
constexpr Milliseconds kLeaving(500);  // from a close at the client until the server notices it
constexpr const char* kLater = "later";

enum class Request : uint64_t { set, find, add, compare_set, erase, size, fail_all };
enum class Answer : uint64_t { value, nothing, failed };

std::string version_of(const StoreClient& c) { return c.version.empty() ? version() : c.version; }

uint64_t random_id() {
  std::random_device source;
  return (uint64_t{source()} << 32) ^ source();
}

}  // namespace

// ---- the server ---------------------------------------------------------------------------------

struct TcpStoreServer::State {
  struct Connection {
    Socket socket;
    std::thread thread;
    std::atomic<bool> done{false};
    std::atomic<uint64_t> client{0};
  };
  StoreClient run;
  MemoryStore store;
  Socket listening;
  uint16_t port = 0;
  std::atomic<bool> closing{false};
  std::mutex mutex;
  std::list<Connection> connections;
  std::map<int, uint64_t> seen;  // rank, its client
  bool complete = false;         // all ranks were here at once
  std::set<int> came;            // accepted or refused
  int expected = 0;              // how many ranks must come, by the largest number that a rank gave
  std::thread acceptor;

  // Returns an empty text, or why this client is refused.
  std::string greet(Connection& c, const std::string& hello) {
    Unpacker u(hello);
    const uint64_t magic = u.number();
    if (magic != kMagic) return "[store] what connected is no client of a Ramet store";
    const std::string theirs = u.text(), run_id = u.text();
    const auto rank = static_cast<int>(u.number()), world = static_cast<int>(u.number());
    const uint64_t id = u.number();
    if (!u.good()) return "[store] the client's greeting is damaged";
    c.client = id;
    if (!run.run_id.empty() && !run_id.empty() && run.run_id != run_id)
      return "[store] rank " + std::to_string(rank) + " belongs to the run '" + run_id +
             "', but the store here serves the run '" + run.run_id +
             "': another run uses this address and port";
    bool met;
    {
      const std::lock_guard lock(mutex);
      came.insert(rank);
      expected = std::max(expected, world);
      met = complete;
    }
    std::string why;
    if (theirs != version_of(run))
      why = "[store] different versions of the library: rank " + std::to_string(rank) + " has " +
            theirs + ", rank 0 has " + version_of(run);
    else if (world != run.world_size)
      why = "[store] world size: rank " + std::to_string(rank) + " was given " +
            std::to_string(world) + ", rank 0 was given " + std::to_string(run.world_size);
    else if (rank < 0 || rank >= world)
      why = "[store] rank: got " + std::to_string(rank) + ", expected 0 to " +
            std::to_string(world - 1);
    else {
      std::unique_lock lock(mutex);
      const Deadline soon = deadline_in(kLeaving);
      uint64_t& client = seen.try_emplace(rank, id).first->second;
      for (;;) {
        if (closing) return kLater;
        if (!has(client) && !complete) client = id;  // it tries again, the others are coming
        if (client == id) break;
        if (!has(client)) return kLater;
        if (std::chrono::steady_clock::now() > soon) {
          why = "[store] rank " + std::to_string(rank) +
                " is there twice: two processes were started with it";
          break;
        }
        lock.unlock();
        std::this_thread::sleep_for(Milliseconds(10));
        lock.lock();
      }
      complete =
          complete || (seen.size() == static_cast<size_t>(run.world_size) &&
                       std::ranges::all_of(seen, [this](const auto& s) { return has(s.second); }));
    }
    // All ranks must get this error: without this rank they would wait for ever. Not if all are
    // there already.
    if (!why.empty() && !met) store.fail_all(why);
    return why;
  }

  // Is the client connected? A thread may still serve a client that has given up or was killed, for
  // as long as that client's request wanted to wait. So the socket counts, not the thread.
  bool has(uint64_t client) const {
    return std::ranges::any_of(connections, [client](const Connection& c) {
      return c.client == client && !c.done && !c.socket.left();
    });
  }

  void serve(Connection& c) {
    std::string frame;
    // Any program may connect, so the limit is short: a greeting is short.
    if (!c.socket.read_frame(frame, deadline_in(kPatience), 4096)) return;
    const std::string refusal = greet(c, frame);
    if (!c.socket.write_frame(Packer().number(kMagic).text(refusal).bytes(),
                              deadline_in(kPatience)) ||
        !refusal.empty())
      return;
    while (c.socket.read_frame(frame, Deadline::max())) {
      if (!c.socket.write_frame(answer(frame), deadline_in(kPatience))) return;
    }
  }

  std::string answer(const std::string& frame) {
    Unpacker u(frame);
    const auto request = static_cast<Request>(u.number());
    const std::string key = u.text();
    Packer out;
    const auto value = [&](const std::optional<std::string>& v) {
      out.number(static_cast<uint64_t>(v ? Answer::value : Answer::nothing)).text(v.value_or(""));
    };
    try {
      switch (request) {
        case Request::set: store.set(key, u.text()), value(""); break;
        case Request::find:
          value(store.find(key, deadline_in(Milliseconds(static_cast<int64_t>(u.number())))));
          break;
        case Request::add:
          value(std::to_string(store.add(key, static_cast<int64_t>(u.number()))));
          break;
        case Request::compare_set: {
          const bool present = u.number() != 0;
          const std::string expected = u.text(), desired = u.text();
          value(store.compare_set(key, present ? std::optional(expected) : std::nullopt, desired));
          break;
        }
        case Request::erase: value(std::to_string(store.erase(key))); break;
        case Request::size: value(std::to_string(store.size())); break;
        case Request::fail_all: store.fail_all(key), value(""); break;
        default: fail("store", "a request of an unknown kind");
      }
    } catch (const Error& e) {
      return Packer().number(static_cast<uint64_t>(Answer::failed)).text(e.what()).bytes();
    }
    return out.bytes();
  }

  void accept_all() {
    while (!closing) {
      try {
        accept_one();
      } catch (const std::exception&) {  // no memory: the client gets no connection
        std::this_thread::sleep_for(Milliseconds(20));
      }
    }
  }

  void accept_one() {
    const int fd = accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EINTR && errno != ECONNABORTED && !closing)
        std::this_thread::sleep_for(Milliseconds(20));  // perhaps no descriptors are left
      return;
    }
    Socket came(fd);
    const std::lock_guard lock(mutex);
    if (closing) return;
    connections.remove_if([](Connection& c) {
      if (!c.done) return false;
      c.thread.join();
      return true;
    });
    Connection& c = connections.emplace_back();
    c.socket = std::move(came);
    try {
      c.thread = std::thread([this, &c] {
        try {
          serve(c);
        } catch (const std::exception&) {}  // no memory: the client's connection closes
        c.socket.shut();
        c.done = true;
      });
    } catch (const std::system_error&) {  // no more threads: the client's connection closes
      connections.pop_back();
    }
  }
};

TcpStoreServer::TcpStoreServer(const std::string& host, uint16_t port, const StoreClient& run)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.run = run;
  s.came = {run.rank};
  s.expected = run.world_size;
  std::string why;
  s.listening = detail::listen_on(host, port, why);
  RAMET_CHECK(s.listening.open(), "store", "rank 0 cannot serve the store at ",
              host.empty() ? "*" : host, ":", port, ": ", why,
              " (the port is taken by another program or another run? MASTER_PORT chooses one)");
  s.port = detail::port_of(s.listening);
  s.acceptor = std::thread([&s] { s.accept_all(); });
}

TcpStoreServer::~TcpStoreServer() {
  State& s = *state_;
  s.closing = true;
  s.store.close();
  s.listening.shut();  // wakes accept
  s.acceptor.join();   // from here on only this thread uses the list
  for (State::Connection& c : s.connections) c.socket.shut();
  for (State::Connection& c : s.connections) c.thread.join();
}

uint16_t TcpStoreServer::port() const { return state_->port; }

bool TcpStoreServer::has_to_tell() const {
  State& s = *state_;
  if (!s.store.failure()) return false;
  const std::lock_guard lock(s.mutex);
  return s.came.size() < static_cast<size_t>(s.expected) ||
         std::ranges::any_of(s.connections, [](const State::Connection& c) { return !c.done; });
}

// ---- the client ---------------------------------------------------------------------------------

struct TcpStore::State {
  std::string host;
  uint16_t port = 0;
  StoreClient client;
  std::shared_ptr<TcpStoreServer> server;
  uint64_t id = random_id();
  std::mutex mutex;
  std::vector<Socket> idle;
  std::string address;

  std::string where() const { return "tcp://" + host + ":" + std::to_string(port); }
  std::string gone() const {
    return "the store at " + where() + " is gone: rank 0's process, which serves it, ended";
  }

  // `again`: this client has reached the store before.
  Socket connect(Deadline deadline, bool again) {
    for (bool later = false;; later = true) {
      if (Socket s = meet(deadline, later, again); s.open()) return s;
      RAMET_CHECK(time_left(deadline).count() > 0, "store", "Timeout: the store at ", where(),
                  " is one that rank ", client.rank,
                  " has left already, and rank 0 has not made a new one");
      std::this_thread::sleep_for(Milliseconds(20));
    }
  }

  // Returns a closed socket for "try later". A server that ends without an answer means that too.
  Socket meet(Deadline deadline, bool later, bool again) {
    std::string why, frame;
    Socket s = detail::connect_to(host, port, deadline, why, again);
    RAMET_CHECK(s.open() || !again, "store", gone(), " (", why, ")");
    RAMET_CHECK(
        s.open(), "store", "Timeout: no store answers at ", where(), " (", why,
        "): is rank 0 running, and are MASTER_ADDR and MASTER_PORT the same for all ranks?");
    const std::string hello = Packer()
                                  .number(kMagic)
                                  .text(version_of(client))
                                  .text(client.run_id)
                                  .number(static_cast<uint64_t>(client.rank))
                                  .number(static_cast<uint64_t>(client.world_size))
                                  .number(id)
                                  .bytes();
    const Deadline soon = std::min(deadline, deadline_in(kPatience));
    const bool answered = s.write_frame(hello, soon) && s.read_frame(frame, soon, 1 << 16);
    if (!answered && later) return {};
    Unpacker u(frame);
    RAMET_CHECK(answered && u.number() == kMagic, "store", "what listens at ", where(),
                " is no Ramet store: the port is taken by another program");
    const std::string refusal = u.text();
    if (refusal == kLater) return {};
    if (!refusal.empty()) throw Error(refusal);
    return s;
  }

  std::optional<std::string> ask(const std::string& request, Milliseconds longest = {}) {
    Socket s;
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        s = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!s.open()) s = connect(deadline_in(kPatience), /*again=*/true);
    const Deadline deadline = deadline_in(longest + kPatience);
    std::string frame;
    RAMET_CHECK(s.write_frame(request, deadline) && s.read_frame(frame, deadline), "store", gone());
    {
      const std::lock_guard lock(mutex);
      idle.push_back(std::move(s));
    }
    Unpacker u(frame);
    const auto status = static_cast<Answer>(u.number());
    std::string value = u.text();
    if (status == Answer::failed) throw Error(value);
    if (status == Answer::nothing) return std::nullopt;
    return value;
  }
};

namespace {
Packer request(Request r, const std::string& key) {
  return Packer().number(static_cast<uint64_t>(r)).text(key);
}
}  // namespace

TcpStore::TcpStore(std::string host, uint16_t port, const StoreClient& client, Milliseconds timeout,
                   std::shared_ptr<TcpStoreServer> server)
    : state_(std::make_unique<State>()) {
  state_->host = std::move(host);
  state_->port = port;
  state_->client = client;
  state_->server = std::move(server);
  Socket first = state_->connect(deadline_in(timeout), /*again=*/false);
  state_->address = detail::local_address_of(first);
  state_->idle.push_back(std::move(first));
}
TcpStore::~TcpStore() = default;

std::string TcpStore::where() const { return state_->where(); }
std::string TcpStore::local_address() const { return state_->address; }

void TcpStore::set(const std::string& key, const std::string& value) {
  state_->ask(request(Request::set, key).text(value).bytes());
}
std::optional<std::string> TcpStore::find(const std::string& key, Deadline deadline) {
  const Milliseconds left = time_left(deadline);
  return state_->ask(
      request(Request::find, key).number(static_cast<uint64_t>(left.count())).bytes(), left);
}
int64_t TcpStore::add(const std::string& key, int64_t n) {
  return std::stoll(
      *state_->ask(request(Request::add, key).number(static_cast<uint64_t>(n)).bytes()));
}
std::optional<std::string> TcpStore::compare_set(const std::string& key,
                                                 const std::optional<std::string>& expected,
                                                 const std::string& value) {
  return state_->ask(request(Request::compare_set, key)
                         .number(expected.has_value())
                         .text(expected.value_or(""))
                         .text(value)
                         .bytes());
}
bool TcpStore::erase(const std::string& key) {
  return *state_->ask(request(Request::erase, key).bytes()) == "1";
}
size_t TcpStore::size() { return std::stoul(*state_->ask(request(Request::size, "").bytes())); }
void TcpStore::fail_all(const std::string& why) {
  state_->ask(request(Request::fail_all, why).bytes());
}

}  // namespace ramet::distributed
