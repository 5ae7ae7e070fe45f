// The store that rank 0 serves over TCP.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

/// Identifies a client: the server refuses clients that cannot belong to its run.
struct StoreClient {
  /// This rank's number, and the number of ranks:
  int rank = 0, world_size = 1;
  std::string run_id;   // of one start of all ranks; empty: any
  std::string version;  // of the library; empty: this one
};

/// Serves the store over TCP. Errors: the port is taken.
class RAMET_API TcpStoreServer {
 public:
  /// `port` 0: any free port. `host`: the address to listen on; empty: all.
  TcpStoreServer(const std::string& host, uint16_t port, const StoreClient& run);
  /// Waiting clients get an Error.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  /// The port on which it listens.
  uint16_t port() const;
  /// Has it failed, while some rank of the run has not come yet, or has not received the error and
  /// gone? If ranks disagree about their number, the largest one counts.
  bool has_to_tell() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A client. Concurrent calls use a connection each. Errors: no process listens by the deadline;
/// the listening process is no store; the server refuses this client. It refuses another world
/// size, run or version of the library, and a rank that is there already. Then every rank of the
/// run gets the error.
class RAMET_API TcpStore final : public Store {
 public:
  /// `server`: the server, if it is in this process; this client keeps it alive.
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
  /// This host's address on the way to the server: peers can reach this process there too.
  std::string local_address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace distributed
}  // namespace ramet
