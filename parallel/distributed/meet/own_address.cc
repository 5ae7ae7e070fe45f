#include "parallel/distributed/meet/own_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "parallel/distributed/meet/socket_internal.h"

namespace ramet::distributed {

std::string address_of_interface(const std::string& name) {
  constexpr const char* op = "address_of_interface";
  const auto all = detail::interface_addresses();
  RAMET_CHECK(all, op, "the system does not list its interfaces");
  for (const detail::InterfaceAddress& a : *all)
    if (a.interface == name) return a.text;
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
