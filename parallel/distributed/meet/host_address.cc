#include "parallel/distributed/meet/host_address_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "parallel/distributed/meet/socket_internal.h"
#include "runtime/base/error.h"

namespace ramet::distributed::detail {
namespace {

// The source address of packets from this host to `address`; empty: there is no route. Sends
// nothing.
std::string address_towards(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), "9", &hints, &found) != 0) return {};
  const Socket s(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  const bool reached = s.open() && connect(s.fd(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  return reached ? local_address_of(s) : std::string();
}

// The address of an interface that is up and not loopback, IPv4 before IPv6.
std::string first_interface_address() {
  const auto all = interface_addresses();
  for (const bool v6 : {false, true})
    for (const InterfaceAddress& a : all ? *all : std::vector<InterfaceAddress>())
      if (a.v6 == v6 && a.up && !a.loopback) return a.text;
  return {};
}

}  // namespace

HostAddress HostAddress::parse(const std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), end < text.size() ? text.substr(end + 1) : ""};
}

std::string this_network() {
  std::string boot;
  auto file = ramet::detail::classic<std::ifstream>("/proc/sys/kernel/random/boot_id");
  std::getline(file, boot);
  // A copy of a running virtual machine has the same boot id, so the name is included.
  std::array<char, 256> host{}, space{};
  gethostname(host.data(), host.size() - 1);
  if (readlink("/proc/self/ns/net", space.data(), space.size() - 1) < 0) space[0] = 0;
  return boot + " " + host.data() + " " + space.data();
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string address_among(const std::vector<HostAddress>& all, int rank) {
  const HostAddress& mine = all[static_cast<size_t>(rank)];
  const auto here = [&](const HostAddress& h) {
    return h.network == mine.network && h.address == mine.address;
  };
  if (std::ranges::all_of(all, here)) return mine.address.empty() ? "127.0.0.1" : mine.address;
  if (!mine.address.empty() && !is_loopback(mine.address)) return mine.address;
  for (const HostAddress& other : all) {
    if (here(other) || other.address.empty() || is_loopback(other.address)) continue;
    const std::string found = address_towards(other.address);
    if (!found.empty() && !is_loopback(found)) return found;
  }
  const std::string found = first_interface_address();
  RAMET_CHECK(!found.empty(), "rendezvous", "rank ", rank,
              "'s host has no address but loopback's, expected one that the ranks of other hosts "
              "reach (RAMET_SOCKET_ADDR or RAMET_SOCKET_IFNAME chooses it)");
  return found;
}

}  // namespace ramet::distributed::detail
