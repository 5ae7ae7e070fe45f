// A TCP connection with deadlines, for the store.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/meet/store.h"

namespace ramet::distributed::detail {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Socket& operator=(Socket&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  /// Has the other side closed the connection, or its process ended? True even while unread data is
  /// left.
  bool left() const;
  /// Wakes threads that read or write; the descriptor stays.
  void shut();
  /// False: the other side closed, the connection broke, or the deadline passed.
  bool write_all(const void* data, size_t bytes, Deadline deadline) const;
  bool read_all(void* data, size_t bytes, Deadline deadline) const;
  static constexpr uint32_t kMaxFrame = 1u << 28;
  /// Frames: a length of 32 bits, then that many bytes, at most kMaxFrame (or `most`).
  bool write_frame(const std::string& payload, Deadline deadline) const;
  bool read_frame(std::string& payload, Deadline deadline, uint32_t most = kMaxFrame) const;

 private:
  int fd_ = -1;
};

/// Returns a closed socket if no process listens by the deadline; with `now`, if none listens now.
/// `why` says what happened last.
Socket connect_to(const std::string& host, uint16_t port, Deadline deadline, std::string& why,
                  bool now = false);
/// Returns a closed socket if the port is taken or the host is not this one.
Socket listen_on(const std::string& host, uint16_t port, std::string& why);
uint16_t port_of(const Socket& listening);
/// This end's numeric address.
std::string local_address_of(const Socket& connected);

/// One address of an interface, numeric, IPv4 or IPv6.
struct InterfaceAddress {
  std::string interface, text;
  bool v6, up, loopback;
};
/// The addresses of this host's interfaces, in the system's order; nullopt: the system does not
/// list them.
std::optional<std::vector<InterfaceAddress>> interface_addresses();

/// Packs values into a frame; Unpacker reads them.
class Packer {
 public:
  Packer& number(uint64_t n) {
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof(n));
    return *this;
  }
  Packer& text(const std::string& s) {
    number(s.size());
    bytes_ += s;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};
class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
  uint64_t number();
  std::string text();
  /// Did every value that was read exist?
  bool good() const { return good_; }
  size_t at() const { return at_; }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace ramet::distributed::detail
