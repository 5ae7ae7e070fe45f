#include "tests/parallel/distributed/support.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__SANITIZE_THREAD__)
// Gloo is a library without TSan, which does not see its atomic counts. When the last of several
// groups of a process frees the device that they share, the earlier ones seem to still use it.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:gloo::transport::tcp::Device::~Device\n";
}
#endif

namespace ramet::distributed {

void as_ranks(int n, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) { errors[static_cast<size_t>(i)] = std::current_exception(); }
    });
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& e) { dprintf(STDERR_FILENO, "in_child: %s\n", e.what()); }
    _exit(code);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Listener::Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof(at);
  if (bind(fd_, reinterpret_cast<sockaddr*>(&at), n) != 0 || listen(fd_, 8) != 0 ||
      getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &n) != 0)
    throw std::runtime_error("no port to listen on");
  port_ = ntohs(at.sin_port);
}
Listener::~Listener() { close(fd_); }

void Listener::answer_once(const std::string& answer) const {
  const int fd = accept(fd_, nullptr, nullptr);
  char byte;
  if (recv(fd, &byte, 1, 0) == 1) send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  while (recv(fd, &byte, 1, 0) > 0) {}
  close(fd);
}

uint16_t free_port() { return Listener().port(); }

TempFolder::TempFolder() {
  const char* root = std::getenv("TEST_TMPDIR");
  path_ = std::string(root ? root : "/tmp") + "/ramet_XXXXXX";
  if (!mkdtemp(path_.data())) throw std::runtime_error("no temporary folder");
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ramet::distributed
