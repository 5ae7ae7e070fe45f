// LibTorch's stores over Ramet's: what processes agree on before they can talk. Values are bytes.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/meet/file_store.h"
#include "parallel/distributed/meet/store.h"
#include "parallel/distributed/meet/tcp_store.h"
#include "ramet/compat/torch.h"

namespace c10d {

using WatchKeyCallback =
    std::function<void(std::optional<std::string>, std::optional<std::string>)>;

namespace detail {
using RametStore = ::ramet::distributed::Store;
inline std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
}  // namespace detail

/// A handle; clone() is another one of the same store. One that a program derives itself may be
/// used by the program, but groups are made over those that are here.
class Store : public torch::CustomClassHolder {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(300);
  static constexpr std::chrono::milliseconds kNoTimeout = std::chrono::milliseconds::zero();

  Store() = default;
  explicit Store(const std::chrono::milliseconds& timeout) : timeout_(timeout) {}
  virtual c10::intrusive_ptr<Store> clone() { return c10::make_intrusive<Store>(*this); }

  void set(const std::string& key, const std::string& value) { set(key, detail::bytes_of(value)); }
  virtual void set(const std::string& key, const std::vector<uint8_t>& value) {
    inner("set").set(key, detail::text_of(value));
  }
  /// Sets the key where its value is the expected one, or where that is empty and there is no such
  /// key. The value after that; the expected one where there is none.
  std::string compareSet(const std::string& key, const std::string& expected,
                         const std::string& desired) {
    return detail::text_of(compareSet(key, detail::bytes_of(expected), detail::bytes_of(desired)));
  }
  virtual std::vector<uint8_t> compareSet(const std::string& key,
                                          const std::vector<uint8_t>& expected,
                                          const std::vector<uint8_t>& desired) {
    const std::string old = detail::text_of(expected), next = detail::text_of(desired);
    detail::RametStore& store = inner("compareSet");
    std::optional<std::string> was;
    if (old.empty()) {
      was = store.compare_set(key, std::nullopt, next);
      if (!was) return desired;
      if (!was->empty()) return detail::bytes_of(*was);
    }
    was = store.compare_set(key, old, next);
    return !was ? expected : *was == old ? desired : detail::bytes_of(*was);
  }
  std::string get_to_str(const std::string& key) { return detail::text_of(get(key)); }
  /// Waits until there is one, or for the timeout.
  virtual std::vector<uint8_t> get(const std::string& key) {
    auto value = find(key, getTimeout());
    if (!value) too_late("get", {key}, getTimeout());
    return detail::bytes_of(*value);
  }
  virtual int64_t add(const std::string& key, int64_t value) {
    return inner("add").add(key, value);
  }
  virtual bool deleteKey(const std::string& key) { return inner("deleteKey").erase(key); }
  virtual bool check(const std::vector<std::string>& keys) { return inner("check").check(keys); }
  /// Of the whole store, with those that it keeps for itself.
  virtual int64_t getNumKeys() { return static_cast<int64_t>(inner("getNumKeys").size()); }
  virtual void wait(const std::vector<std::string>& keys) { wait(keys, getTimeout()); }
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) {
    const auto deadline = ::ramet::distributed::deadline_in(whole(timeout));
    std::vector<std::string> missing;
    for (const std::string& key : keys)
      if (!inner("wait").find(key, deadline)) missing.push_back(key);
    if (!missing.empty()) too_late("wait", missing, timeout);
  }
  virtual const std::chrono::milliseconds& getTimeout() const noexcept { return timeout_; }
  virtual void setTimeout(const std::chrono::milliseconds& timeout) { timeout_ = timeout; }
  virtual void watchKey(const std::string& /*key*/, WatchKeyCallback /*callback*/) {
    throw c10::NotImplementedError("[watchKey] no store has it, nor have LibTorch's");
  }

  virtual void append(const std::string& key, const std::vector<uint8_t>& value) {
    detail::RametStore& store = inner("append");
    for (auto was = find(key, kNoTimeout);;) {
      auto now = store.compare_set(key, was, was.value_or("") + detail::text_of(value));
      if (now == was) return;
      was = std::move(now);
    }
  }
  virtual std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) {
    std::vector<std::vector<uint8_t>> values;
    for (const std::string& key : keys) values.push_back(get(key));
    return values;
  }
  virtual void multiSet(const std::vector<std::string>& keys,
                        const std::vector<std::vector<uint8_t>>& values) {
    RAMET_CHECK(keys.size() == values.size(), "multiSet", "got ", keys.size(), " keys and ",
                values.size(), " values, expected a value for each key");
    for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
  }
  virtual bool hasExtendedApi() const { return true; }

  /// A queue is some keys in addition to those of the program: KEY/queue/...
  virtual void queuePush(const std::string& key, const std::vector<uint8_t>& value) {
    const int64_t number = inner("queuePush").add(last_of(key), 1);
    inner("queuePush").set(item_of(key, number), detail::text_of(value));
  }
  virtual std::vector<uint8_t> queuePop(const std::string& key, bool block = true) {
    detail::RametStore& store = inner("queuePop");
    const auto deadline =
        ::ramet::distributed::deadline_in(block ? whole(getTimeout()) : kNoTimeout);
    for (;;) {
      const auto taken = find(taken_of(key), kNoTimeout);
      const int64_t next = (taken ? std::stoll(*taken) : 0) + 1;
      const auto value = store.find(item_of(key, next), deadline);
      if (value && store.compare_set(taken_of(key), taken, std::to_string(next)) == taken) {
        store.erase(item_of(key, next));
        return detail::bytes_of(*value);
      }
      if (value || find(taken_of(key), kNoTimeout) != taken) continue;  // another process took it
      if (block) too_late("queuePop", {key}, getTimeout());
      throw c10::DistQueueEmptyError("[queuePop] the queue is empty: " + key);
    }
  }
  virtual int64_t queueLen(const std::string& key) {
    detail::RametStore& store = inner("queueLen");
    return store.add(last_of(key), 0) - store.add(taken_of(key), 0);
  }
  virtual std::vector<std::string> listKeys() {
    throw c10::NotImplementedError("[listKeys] Ramet's stores do not list their keys");
  }
  /// Until `world_size` callers have come; a key of a barrier serves once.
  virtual void barrier(const std::string& key, int64_t world_size,
                       const std::chrono::milliseconds& timeout) {
    const std::string last = key + "/last";
    if (add(key, 1) == world_size) set(last, "1");
    wait({last}, timeout);
  }
  void barrier(const std::string& key, int64_t world_size) {
    barrier(key, world_size, getTimeout());
  }

  /// Ramet's own, null where a program derived its store itself.
  const std::shared_ptr<detail::RametStore>& ramet_store() const { return store_; }

 protected:
  Store(std::shared_ptr<detail::RametStore> store, std::chrono::milliseconds timeout)
      : timeout_(timeout), store_(std::move(store)) {}

  detail::RametStore& inner(const char* op) const {
    RAMET_CHECK(store_, op, "the store is one of the program's own that does not override this");
    return *store_;
  }
  /// LibTorch's 0 is for ever.
  static std::chrono::milliseconds whole(std::chrono::milliseconds timeout) {
    return timeout == kNoTimeout ? ::ramet::distributed::kForever : timeout;
  }
  std::optional<std::string> find(const std::string& key, std::chrono::milliseconds timeout) const {
    return inner("get").find(key, ::ramet::distributed::deadline_in(timeout));
  }
  [[noreturn]] void too_late(const char* op, const std::vector<std::string>& keys,
                             std::chrono::milliseconds timeout) const {
    throw c10::DistStoreError(c10::str("[", op, "] wait timeout after ", timeout.count(),
                                       "ms, keys: ", c10::Join(", ", keys), " (store ",
                                       store_->where(), ")"));
  }

  std::chrono::milliseconds timeout_ = kDefaultTimeout;

 private:
  static std::string last_of(const std::string& key) { return key + "/queue/last"; }
  static std::string taken_of(const std::string& key) { return key + "/queue/taken"; }
  static std::string item_of(const std::string& key, int64_t number) {
    return key + "/queue/" + std::to_string(number);
  }
  std::shared_ptr<detail::RametStore> store_;
};

/// Sets a store's timeout until the end of the scope.
class StoreTimeoutGuard {
 public:
  explicit StoreTimeoutGuard(Store& store, const std::chrono::milliseconds& timeout)
      : store_(store), before_(store.getTimeout()) {
    store.setTimeout(timeout);
  }
  ~StoreTimeoutGuard() { store_.setTimeout(before_); }
  StoreTimeoutGuard(const StoreTimeoutGuard&) = delete;
  StoreTimeoutGuard& operator=(const StoreTimeoutGuard&) = delete;

 private:
  Store& store_;
  std::chrono::milliseconds before_;
};

/// For threads of one process: groups over it have no connections.
class HashStore : public Store {
 public:
  HashStore() : Store(std::make_shared<::ramet::distributed::MemoryStore>(), kDefaultTimeout) {}
  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<HashStore>(*this); }
};

/// Keys PREFIX/KEY of another store; its timeout is that one's.
class PrefixStore : public Store {
 public:
  PrefixStore(const std::string& prefix, c10::intrusive_ptr<Store> store)
      : Store(below(prefix, store), store->getTimeout()), under_(std::move(store)) {}
  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<PrefixStore>(*this); }
  const std::chrono::milliseconds& getTimeout() const noexcept override {
    return under_->getTimeout();
  }
  void setTimeout(const std::chrono::milliseconds& timeout) override {
    under_->setTimeout(timeout);
  }
  c10::intrusive_ptr<Store> getUnderlyingStore() { return under_; }
  c10::intrusive_ptr<Store> getUnderlyingNonPrefixStore() {
    c10::intrusive_ptr<Store> at = under_;
    while (auto* prefixed = dynamic_cast<PrefixStore*>(at.get())) at = prefixed->under_;
    return at;
  }

 private:
  static std::shared_ptr<detail::RametStore> below(const std::string& prefix,
                                                   const c10::intrusive_ptr<Store>& store) {
    RAMET_CHECK(store && store->ramet_store(), "PrefixStore", "store: got ",
                store ? "one of the program's own" : "null",
                ", expected a TCPStore, FileStore, HashStore or PrefixStore");
    return std::make_shared<::ramet::distributed::PrefixStore>(store->ramet_store(), prefix);
  }
  c10::intrusive_ptr<Store> under_;
};

namespace detail {
/// Ramet's stores number their clients, LibTorch's do not. This client has a number of its own.
inline ::ramet::distributed::StoreClient unnumbered() {
  constexpr int kMany = 1 << 30;
  std::random_device random;
  ::ramet::distributed::StoreClient client;
  client.rank = std::uniform_int_distribution<int>(1, kMany - 1)(random);
  client.world_size = kMany;
  return client;
}
}  // namespace detail

/// masterListenFd is an Error; useLibUV means nothing here.
struct TCPStoreOptions {
  static constexpr std::uint16_t kDefaultPort = 29500;
  std::uint16_t port = kDefaultPort;  // of a server, 0: a free one, see getPort()
  bool isServer = false;
  std::optional<std::size_t> numWorkers = std::nullopt;
  bool waitWorkers = true;
  std::chrono::milliseconds timeout = Store::kDefaultTimeout;
  bool multiTenant = false;
  std::optional<int> masterListenFd = std::nullopt;
  bool useLibUV = true;
};

/// The process with isServer serves it, as long as a handle of it is there. Errors: the port is
/// taken, no process serves it until the timeout, not all workers come (the server waits for them).
class TCPStore : public Store {
 public:
  explicit TCPStore(std::string host, const TCPStoreOptions& opts = {})
      : TCPStore(std::move(host), opts, connected(opts)) {}
  /// LibTorch's older form.
  TCPStore(std::string host, std::uint16_t port,
           std::optional<std::size_t> numWorkers = std::nullopt, bool isServer = false,
           std::chrono::milliseconds timeout = kDefaultTimeout, bool waitWorkers = true)
      : TCPStore(std::move(host), options(port, numWorkers, isServer, timeout, waitWorkers)) {}
  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<TCPStore>(*this); }

  /// The server's side waits until numWorkers have come, itself among them.
  void waitForWorkers() {
    if (!workers_) return;
    const auto here = static_cast<std::size_t>(inner("waitForWorkers").add("init/", 1));
    if (here >= *workers_) inner("waitForWorkers").set("init/all", "1");
    if (is_server_) wait({"init/all"}, getTimeout());
  }
  const std::string& getHost() const noexcept { return host_; }
  std::uint16_t getPort() const noexcept { return port_; }
  bool isLibUvBackend() const noexcept { return false; }

 private:
  using Server = std::shared_ptr<::ramet::distributed::TcpStoreServer>;
  TCPStore(std::string host, const TCPStoreOptions& opts, const Server& server)
      : Store(std::make_shared<::ramet::distributed::TcpStore>(
                  host, server ? server->port() : opts.port, detail::unnumbered(),
                  whole(opts.timeout), server),
              opts.timeout),
        host_(std::move(host)),
        port_(server ? server->port() : opts.port),
        workers_(opts.numWorkers),
        is_server_(opts.isServer) {
    if (opts.waitWorkers) waitForWorkers();
  }
  static TCPStoreOptions options(std::uint16_t port, std::optional<std::size_t> workers,
                                 bool is_server, std::chrono::milliseconds timeout,
                                 bool wait_workers) {
    TCPStoreOptions o;
    o.port = port;
    o.numWorkers = workers;
    o.isServer = is_server;
    o.timeout = timeout;
    o.waitWorkers = wait_workers;
    return o;
  }
  // Null: another process serves it.
  static Server connected(const TCPStoreOptions& opts) {
    RAMET_CHECK(!opts.masterListenFd, "TCPStore",
                "masterListenFd: got a socket, expected none: Ramet opens its own");
    if (!opts.isServer) return nullptr;
    static std::mutex mutex;
    static std::map<std::uint16_t, std::weak_ptr<::ramet::distributed::TcpStoreServer>> shared;
    const std::lock_guard<std::mutex> lock(mutex);
    if (opts.multiTenant)
      if (Server server = shared[opts.port].lock()) return server;
    auto server =
        std::make_shared<::ramet::distributed::TcpStoreServer>("", opts.port, detail::unnumbered());
    if (opts.multiTenant) shared[server->port()] = server;
    return server;
  }

  std::string host_;
  std::uint16_t port_;
  std::optional<std::size_t> workers_;
  bool is_server_;
};

/// The last of numWorkers that leaves removes the file; none of them does where numWorkers < 0.
class FileStore : public Store {
 public:
  explicit FileStore(std::string path, int numWorkers = -1) : FileStore(open(path), path) {
    here_ = std::make_shared<Here>(ramet_store(), path_, numWorkers);
  }
  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<FileStore>(*this); }
  const std::string& getPath() const noexcept { return path_; }

 private:
  struct Here {
    Here(std::shared_ptr<detail::RametStore> s, std::string p, int n)
        : store(std::move(s)), path(std::move(p)), workers(n) {
      store->add("c10d/here", 1);
    }
    Here(const Here&) = delete;
    ~Here() {
      try {
        const bool last = store->add("c10d/here", -1) == 0;
        if (workers >= 0 && store->add("c10d/left", 1) >= workers && last)
          std::remove(path.c_str());
      } catch (const std::exception&) {}  // the file is gone: nothing to tidy up
    }
    std::shared_ptr<detail::RametStore> store;
    std::string path;
    int workers;
  };
  FileStore(std::shared_ptr<detail::RametStore> store, std::string path)
      : Store(std::move(store), kDefaultTimeout), path_(std::move(path)) {}
  static std::shared_ptr<detail::RametStore> open(const std::string& path) {
    return std::make_shared<::ramet::distributed::FileStore>(path, detail::unnumbered());
  }
  std::string path_;
  std::shared_ptr<Here> here_;
};

}  // namespace c10d
