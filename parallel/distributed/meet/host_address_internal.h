// Finds out at which address other ranks reach the ranks of a host.
#pragma once
#include <string>
#include <vector>

namespace ramet::distributed::detail {

/// What a rank reports to the others about its location.
struct HostAddress {
  std::string network;  // equal for processes that share network interfaces: loopback connects them
  std::string address;  // its address on the way to the store; empty: the store needs no network
  std::string text() const { return network + "\n" + address; }
  static HostAddress parse(const std::string& text);
};

/// Identifies the network of this process: the host's boot and name, and the network namespace.
std::string this_network();
/// Is it in 127.0.0.0/8, or ::1? Numeric addresses only.
bool is_loopback(const std::string& address);

/// The numeric address at which rank `rank` of `all` listens. Ranks of a single host may use
/// loopback. Suppose that there are several hosts and this one reached the store over loopback. (It
/// is rank 0's host: its own name means loopback there on many systems.) Then the result is its
/// address towards another host. If no other host has a usable address, it is that of its first
/// interface. An Error if there is none.
std::string address_among(const std::vector<HostAddress>& all, int rank);

}  // namespace ramet::distributed::detail
