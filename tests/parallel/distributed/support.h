// Ranks as threads and as child processes, free ports, folders that go.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace ramet::distributed {

/// body(0) ... body(n - 1), each on a thread. The exception of the lowest rank is thrown on.
void as_ranks(int n, const std::function<void(int rank)>& body);

/// The exit code of a child process that runs `body` and ends without destructors, as one that is
/// killed; 128 + a signal's number where one ended it. Only where this process has no threads that
/// hold locks: before anything else of the test.
int in_child(const std::function<int()>& body);

/// The upper bound for what is promised within `promised`. The 5 s more
/// are for what has nothing to do with the promise: a machine of two cores that runs other tests
/// too, and sanitizers, under which threads that are to report wait for others.
inline std::chrono::milliseconds in_time(std::chrono::milliseconds promised) {
  return promised + std::chrono::seconds(5);
}

/// A port that nobody listens on just now.
uint16_t free_port();

/// A socket of 127.0.0.1 that is no store.
class Listener {
 public:
  Listener();
  ~Listener();
  uint16_t port() const { return port_; }
  /// Accepts one connection, reads a little, answers and closes.
  void answer_once(const std::string& answer) const;

 private:
  int fd_;
  uint16_t port_ = 0;
};

/// A folder for files of one test, removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace ramet::distributed
