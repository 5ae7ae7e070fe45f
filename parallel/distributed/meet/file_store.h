// The store in a file that all processes can access.
#pragma once
#include <memory>
#include <string>

#include "parallel/distributed/meet/tcp_store.h"

namespace ramet {
namespace distributed {

/// The file is a log of changes; a lock guards it. The first process that comes makes the file and
/// writes its run into the head. Errors:
/// - the folder is missing
/// - the file is not a rendezvous file
/// - the file belongs to another run, or its maker on this host is gone ("stale rendezvous file")
/// - another version of the library, or another world size
/// - a rank that is there already (then every rank gets the error)
class RAMET_API FileStore final : public Store {
 public:
  /// `timeout`: how long to wait while other processes keep the file locked.
  FileStore(std::string path, const StoreClient& client,
            Milliseconds timeout = std::chrono::seconds(30));
  /// The last rank that leaves removes the file.
  ~FileStore() override;
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

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace distributed
}  // namespace ramet
