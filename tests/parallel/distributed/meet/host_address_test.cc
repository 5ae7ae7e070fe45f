// By which address a rank is reached: loopback for one host, never where there are several.
#include "parallel/distributed/meet/host_address_internal.h"

#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <map>

#include "parallel/distributed/meet/rendezvous.h"
#include "parallel/distributed/meet/socket_internal.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed::detail {
namespace {

TEST(HostAddress, Loopback) {
  for (const char* yes : {"127.0.0.1", "127.0.1.1", "127.255.255.254", "::1"})
    EXPECT_TRUE(is_loopback(yes)) << yes;
  for (const char* no : {"", "10.0.0.1", "128.0.0.1", "::2", "fe80::1", "localhost", "127"})
    EXPECT_FALSE(is_loopback(no)) << no;
}

TEST(HostAddress, AsText) {
  for (const HostAddress& h : {HostAddress{"a b", "10.0.0.1"}, HostAddress{"a", ""}}) {
    const HostAddress back = HostAddress::parse(h.text());
    EXPECT_EQ(back.network, h.network);
    EXPECT_EQ(back.address, h.address);
  }
  EXPECT_EQ(HostAddress::parse("").network, "");
  EXPECT_EQ(this_network(), this_network());
  EXPECT_NE(this_network(), "");
}

TEST(HostAddress, OneHostKeepsItsAddress) {
  const HostAddress local{"a", "127.0.0.1"}, outer{"a", "10.1.2.3"}, none{"a", ""};
  EXPECT_EQ(address_among({local, local}, 1), "127.0.0.1");
  EXPECT_EQ(address_among({outer, outer}, 0), "10.1.2.3");
  EXPECT_EQ(address_among({none, none}, 0), "127.0.0.1");
  EXPECT_EQ(address_among({none}, 0), "127.0.0.1");
}

TEST(HostAddress, SeveralHosts) {
  const HostAddress local{"a", "127.0.0.1"}, outer{"b", "10.1.2.3"};
  EXPECT_EQ(address_among({local, outer}, 1), "10.1.2.3");
  // Rank 0's name leads to loopback, or no rank reached a store. The result is an address that
  // others reach, or the error that says what to do.
  bool has_interface = false;
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  for (const ifaddrs* i = all; i; i = i->ifa_next)
    if (i->ifa_addr && i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK) &&
        (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
      has_interface = true;
  freeifaddrs(all);
  const HostAddress none{"a", ""}, other{"b", ""};
  for (const auto& hosts : {std::vector{local, outer}, std::vector{none, other}}) {
    if (!has_interface) {
      EXPECT_ERROR_TEXT(address_among(hosts, 0), "RAMET_SOCKET_ADDR");
      continue;
    }
    const std::string address = address_among(hosts, 0);
    EXPECT_NE(address, "");
    EXPECT_FALSE(is_loopback(address)) << address;
  }
}

// Of several addresses the one by which the other host is reached, not the first interface's.
TEST(HostAddress, TowardsTheOtherHost) {
  const auto all = interface_addresses();
  int seen = 0;
  for (const InterfaceAddress& a : all ? *all : std::vector<InterfaceAddress>()) {
    if (!a.up || a.loopback || a.text.rfind("fe80", 0) == 0)
      continue;  // link-local: of an interface
    EXPECT_EQ(address_among({{"a", "127.0.0.1"}, {"b", a.text}}, 0), a.text);
    ++seen;
  }
  if (seen < 2) GTEST_SKIP() << "this host has " << seen << " addresses, of which any will do";
}

// A name of this host leads to loopback here (as /etc/hosts of many systems says) and leads others
// elsewhere. The store is served under that name, too.
TEST(HostAddress, TheStoreIsServedBehindTheHostsName) {
  std::string why;
  for (const char* host : {"127.0.0.1", "localhost", "::1"}) {
    const Socket s = listen_on(host, 0, why);
    if (std::string(host) == "::1" && !s.open()) continue;  // no IPv6 here
    ASSERT_TRUE(s.open()) << host << ": " << why;
    EXPECT_TRUE(is_loopback(local_address_of(s))) << host << ": " << local_address_of(s);
  }
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const Socket s = listen_on(name.data(), 0, why);
  if (!s.open() || contains(name.data(), "localhost"))
    GTEST_SKIP() << "this host's name, " << name.data() << ", says nothing: " << why;
  EXPECT_FALSE(is_loopback(local_address_of(s))) << name.data() << ": " << local_address_of(s);
}

TEST(HostAddress, OfARendezvous) {
  const TempFolder folder;
  const auto meet_with = [&](std::map<std::string, std::string> variables, const char* name) {
    std::string address[2];
    as_ranks(2, [&](int rank) {
      RendezvousOptions o;
      o.environment = [&](const std::string& n) -> std::optional<std::string> {
        const auto found = variables.find(n);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      };
      address[rank] =
          rendezvous("file://" + folder.path(name) + "?world_size=2&rank=" + std::to_string(rank),
                     o)
              .address;
    });
    EXPECT_EQ(address[0], address[1]);
    return address[0];
  };
  EXPECT_EQ(meet_with({}, "plain"), "127.0.0.1");
  EXPECT_EQ(meet_with({{"RAMET_SOCKET_ADDR", "127.0.0.5"}}, "given"), "127.0.0.5");
}

}  // namespace
}  // namespace ramet::distributed::detail
