#include "parallel/distributed/meet/socket_internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "parallel/distributed/meet/host_address_internal.h"

namespace ramet::distributed::detail {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve_host(const std::string& host, uint16_t port, bool passive, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                                &hints, &found);
  if (error) why = gai_strerror(error);
  return {error ? nullptr : found, freeaddrinfo};
}

// The numeric address; empty unless it is IPv4 or IPv6.
std::string text_of(const sockaddr* address) {
  const int family = address ? address->sa_family : AF_UNSPEC;
  if (family != AF_INET && family != AF_INET6) return {};
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  return getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0
             ? text.data()
             : "";
}

bool leads_to_loopback(const addrinfo& a) { return is_loopback(text_of(a.ai_addr)); }

// Is it a name, not a number, and not the name for loopback?
bool is_name(const std::string& host) {
  in6_addr ignored{};
  return !host.empty() && inet_pton(AF_INET, host.c_str(), &ignored) != 1 &&
         inet_pton(AF_INET6, host.c_str(), &ignored) != 1 &&
         host.find("localhost") == std::string::npos;
}

// Waits for `events`; false at the deadline.
bool ready(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const auto left = time_left(deadline).count();
    const int n = poll(&p, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (n > 0) return true;
    if (n == 0 && left == 0) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Keep-alive detects a host that has vanished, even if this side sends nothing.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

bool Socket::left() const {
  pollfd p{fd_, POLLRDHUP, 0};
  return poll(&p, 1, 0) > 0;  // also POLLHUP and POLLERR
}

void Socket::shut() {
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

bool Socket::write_all(const void* data, size_t bytes, Deadline deadline) const {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = send(fd_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      bytes -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!ready(fd_, POLLOUT, deadline)) return false;
    } else if (n >= 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Socket::read_all(void* data, size_t bytes, Deadline deadline) const {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = recv(fd_, at, bytes, MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      bytes -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!ready(fd_, POLLIN, deadline)) return false;
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Socket::write_frame(const std::string& payload, Deadline deadline) const {
  const auto size = static_cast<uint32_t>(payload.size());
  // Sent in one piece: the second of two pieces would wait for an acknowledgement.
  std::string whole(reinterpret_cast<const char*>(&size), sizeof(size));
  whole += payload;
  return payload.size() <= kMaxFrame && write_all(whole.data(), whole.size(), deadline);
}

bool Socket::read_frame(std::string& payload, Deadline deadline, uint32_t most) const {
  uint32_t size = 0;
  if (!read_all(&size, sizeof(size), deadline) || size > most) return false;
  payload.resize(size);
  return read_all(payload.data(), size, deadline);
}

Socket connect_to(const std::string& host, uint16_t port, Deadline deadline, std::string& why,
                  bool now) {
  // The other side may start later: tries again until the deadline.
  for (auto pause = Milliseconds(5);; pause = std::min(pause * 2, Milliseconds(200))) {
    const Addresses addresses = resolve_host(host, port, false, why);
    bool refused = false;
    for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
      Socket s(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
      if (!s.open()) continue;
      set_options(s.fd());
      int error = connect(s.fd(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        socklen_t length = sizeof(error);
        if (!ready(s.fd(), POLLOUT, deadline)) error = ETIMEDOUT;
        else getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
      }
      if (error == 0) {
        // If no process listens on a port of this host, the system may use it as this connection's
        // own port. The socket is then connected to itself.
        sockaddr_storage here{}, there{};
        socklen_t n = sizeof(here), m = sizeof(there);
        getsockname(s.fd(), reinterpret_cast<sockaddr*>(&here), &n);
        getpeername(s.fd(), reinterpret_cast<sockaddr*>(&there), &m);
        if (n != m || std::memcmp(&here, &there, n) != 0) return s;
        error = ECONNREFUSED;
      }
      why = std::strerror(error);
      refused = refused || error == ECONNREFUSED;
    }
    if (now && refused) return {};
    if (time_left(deadline).count() == 0) return {};
    std::this_thread::sleep_for(std::min(pause, time_left(deadline)));
  }
}

Socket listen_on(const std::string& host, uint16_t port, std::string& why) {
  const Addresses addresses = resolve_host(host, port, true, why);
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
    // A host's own name often means loopback on that host and another address on other hosts. Those
    // connect to the other address, so this listens on all addresses.
    if (leads_to_loopback(*a) && is_name(host)) return listen_on("", port, why);
    Socket s(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
    if (!s.open()) continue;
    const int on = 1, off = 0;
    // Connections of a run that ended a moment ago must not block the port.
    setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ai_family == AF_INET6) setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(s.fd(), a->ai_addr, a->ai_addrlen) == 0 && listen(s.fd(), 512) == 0) return s;
    why = std::strerror(errno);
    if (errno == EADDRINUSE) return {};
    // Other hosts know this host by a name that it does not have itself. Listen on all its
    // addresses.
    if (errno == EADDRNOTAVAIL && !host.empty()) return listen_on("", port, why);
  }
  return {};
}

uint16_t port_of(const Socket& listening) {
  sockaddr_storage here{};
  socklen_t n = sizeof(here);
  getsockname(listening.fd(), reinterpret_cast<sockaddr*>(&here), &n);
  return ntohs(here.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&here)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&here)->sin_port);
}

std::string local_address_of(const Socket& connected) {
  sockaddr_storage here{};
  socklen_t n = sizeof(here);
  if (getsockname(connected.fd(), reinterpret_cast<sockaddr*>(&here), &n) != 0) return {};
  const std::string address = text_of(reinterpret_cast<const sockaddr*>(&here));
  return address.rfind("::ffff:", 0) == 0 ? address.substr(7) : address;
}

std::optional<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> freed(all, freeifaddrs);
  std::vector<InterfaceAddress> out;
  for (const ifaddrs* i = all; i; i = i->ifa_next)
    if (const std::string text = text_of(i->ifa_addr); !text.empty())
      out.push_back({i->ifa_name, text, i->ifa_addr->sa_family == AF_INET6,
                     (i->ifa_flags & IFF_UP) != 0, (i->ifa_flags & IFF_LOOPBACK) != 0});
  return out;
}

uint64_t Unpacker::number() {
  uint64_t n = 0;
  good_ = good_ && bytes_.size() - at_ >= sizeof(n);
  if (!good_) return 0;
  std::memcpy(&n, bytes_.data() + at_, sizeof(n));
  at_ += sizeof(n);
  return n;
}

std::string Unpacker::text() {
  const uint64_t n = number();
  good_ = good_ && bytes_.size() - at_ >= n;
  if (!good_) return {};
  at_ += n;
  return bytes_.substr(at_ - n, n);
}

}  // namespace ramet::distributed::detail
