// The store that rank 0 serves over TCP.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

/// Who asks: the server refuses what cannot belong to its run.
struct StoreClient {
  /// This one's number, and how many there are:
  int rank = 0, world_size = 1;
  std::string run_id;   // of one start of all ranks; empty: any
  std::string version;  // of the library; empty: this one
};

/// The server's side and this process's own client in one. Errors: the port is taken.
class RAMET_API TcpStoreServer {
 public:
  /// `port` 0: a free one. `host`: the address to listen on; empty: all.
  TcpStoreServer(const std::string& host, uint16_t port, const StoreClient& run);
  /// Clients that wait get an Error.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  /// Where it listens.
  uint16_t port() const;
  /// Has it failed, and some rank of the run has not come yet, or has not gone after hearing it?
  /// Where ranks disagree about their number, the largest one counts.
  bool has_to_tell() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A client. Each call that runs at the same time as another has a connection of its own. Errors:
/// nobody listens until the deadline, what listens is no store, the server refuses this client
/// (another world size, run or version of the library, or its rank is there already: then every
/// rank of the run gets the error).
class RAMET_API TcpStore final : public Store {
 public:
  /// `server`: kept alive by this client, where it is in this process.
  TcpStore(std::string host, uint16_t port, const StoreClient& client,
           Milliseconds timeout = kDefaultTimeout,
           std::shared_ptr<TcpStoreServer> server = nullptr);
  ~TcpStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key, Deadline deadline) override;
  int64_t add(const std::string& key, int64_t n) override;
  std::optional<std::string> compare_set(const std::string& key,
                                         const std::optional<std::string>& expected,
                                         const std::string& value) override;
  bool erase(const std::string& key) override;
  size_t size() override;
  void fail_all(const std::string& why) override;
  std::string where() const override;
  /// This host's address on the way to the server: where peers can reach this process too.
  std::string local_address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace distributed
}  // namespace ramet
