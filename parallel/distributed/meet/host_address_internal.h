// By which of its addresses a host's ranks are reached by the others.
#pragma once
#include <string>
#include <vector>

namespace ramet::distributed::detail {

/// What a rank tells the others of where it is.
struct HostAddress {
  std::string network;  // one for processes that share their interfaces: loopback connects them
  std::string address;  // by which it reached the store; empty: it needed none
  std::string text() const { return network + "\n" + address; }
  static HostAddress parse(const std::string& text);
};

/// Of this process: its host's boot and name, its network namespace.
std::string this_network();
/// 127.0.0.0/8 and ::1, as numbers.
bool is_loopback(const std::string& address);

/// Where rank `rank` of `all` listens, numeric. Ranks of one host may keep to loopback. Where there
/// are several hosts and this one reached the store over loopback (it is rank 0's, whose own name
/// leads there on many systems), its address towards another host; where nobody has an address,
/// that of its first interface. An Error where there is none.
std::string address_among(const std::vector<HostAddress>& all, int rank);

}  // namespace ramet::distributed::detail
