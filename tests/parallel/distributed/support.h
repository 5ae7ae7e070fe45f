// Ranks as threads and as child processes, free ports, folders that go.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace ramet::distributed {

/// body(0) ... body(n - 1), each on a thread. The exception of the lowest rank is thrown on.
void as_ranks(int n, const std::function<void(int rank)>& body);

/// The exit code of a child process that runs `body` and ends without destructors, like a killed
/// one. It is 128 + a signal's number where a signal ended it. Call it only where this process has
/// no threads that hold locks: before anything else of the test.
int in_child(const std::function<int()>& body);

/// The upper bound for what is promised within `promised`. The 5 s more cover what has nothing to
/// do with the promise. One cause is a machine of two cores that runs other tests too. Another is
/// sanitizers, under which the threads that report wait for others.
inline std::chrono::milliseconds in_time(std::chrono::milliseconds promised) {
  return promised + std::chrono::seconds(5);
}

/// A port without a listener at this moment.
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
