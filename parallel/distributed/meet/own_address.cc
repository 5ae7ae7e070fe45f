#include "parallel/distributed/own_address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "parallel/distributed/meet/socket.h"

namespace ramet::distributed {

std::string address_of_interface(const std::string& name) {
  constexpr const char* op = "address_of_interface";
  ifaddrs* all = nullptr;
  RAMET_CHECK(getifaddrs(&all) == 0, op, "the system does not list its interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> freed(all, freeifaddrs);
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || name != i->ifa_name) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(i->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      return text.data();
  }
  fail(op, "got \"", name, "\", expected an interface of this host that has an address");
}

bool is_own_address(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, freeaddrinfo);
  for (const addrinfo* a = found; a; a = a->ai_next) {
    const detail::Socket s(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0));
    if (s.open() && bind(s.fd(), a->ai_addr, a->ai_addrlen) == 0) return true;
  }
  return false;
}

std::string own_address() {
  std::array<char, 256> name{};
  const bool named = gethostname(name.data(), name.size() - 1) == 0;
  return named && is_own_address(name.data()) ? name.data() : "127.0.0.1";
}

}  // namespace ramet::distributed
