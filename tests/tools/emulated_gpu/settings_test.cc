#include "tools/emulated_gpu/executor/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/error.h"

namespace ramet::emulated {
namespace {

/// A variable of the environment for one scope.
class With {
 public:
  With(const char* name, const char* value) : name_(std::string("RAMET_EMULATED_") + name) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value, 1);
  }
  ~With() {
    if (before_.empty()) unsetenv(name_.c_str());
    else setenv(name_.c_str(), before_.c_str(), 1);
  }

 private:
  std::string name_, before_;
};

Settings with(const char* name, const char* value) {
  With variable(name, value);
  return settings_from_environment();
}

/// The message of the Error that this value gives, or "" where it gives none.
std::string refusal(const char* name, const char* value) {
  try {
    (void)with(name, value);
    return "";
  } catch (const Error& error) { return error.what(); }
}

#define EXPECT_REFUSED(name, value, text) \
  EXPECT_NE(refusal(name, value).find(text), std::string::npos) << refusal(name, value)

TEST(EmulatedSettings, FromTheEnvironment) {
  EXPECT_EQ(with("DEVICES", "8").devices, 8);
  EXPECT_EQ(with("DEVICES", "0").devices, 0);
  EXPECT_EQ(with("SMS", "132").multiprocessors, 132);
  EXPECT_EQ(with("DRIVER", "12020").driver_version, 12020);
  EXPECT_EQ(with("DRIVER_MEMORY", "2M").driver_memory, size_t(2) << 20);
  EXPECT_EQ(with("HOST_GBPS", "25.5").host_gbps, 25.5);
  EXPECT_EQ(with("PEER_GBPS", "300").peer_gbps, 300);
  EXPECT_EQ(with("WORKERS", "3").workers, 3);
  EXPECT_EQ(with("STACK_KB", "128").stack_kb, 128);
  EXPECT_EQ(with("TIMEOUT_MS", "10").timeout_ms, 10);
  EXPECT_FALSE(with("POOLS", "0").memory_pools);
  EXPECT_EQ(with("BLAS_ALGORITHMS", "1").blas_algorithms, 1);
  EXPECT_FALSE(with("REPORTS", "0").print_reports);
  EXPECT_TRUE(with("ABORT", "1").abort_on_fault);
  EXPECT_FALSE(Settings().driver_waits);
  EXPECT_TRUE(with("DRIVER_WAITS", "1").driver_waits);
  EXPECT_FALSE(with("FREE_IN_CAPTURE", "0").free_in_capture);
  EXPECT_EQ(with("THREADS", "reverse").threads, ThreadOrder::Reverse);
  EXPECT_EQ(with("THREADS", "random").threads, ThreadOrder::Random);
  EXPECT_EQ(with("THREADS", "random:77").thread_seed, 77u);
  EXPECT_EQ(with("STREAMS", "eager").streams, StreamMode::Eager);
  EXPECT_EQ(with("STREAMS", "lazy").streams, StreamMode::Lazy);
  EXPECT_EQ(with("STREAMS", "random:5").streams, StreamMode::Random);
  EXPECT_EQ(with("STREAMS", "random:5").stream_seed, 5u);
}

TEST(EmulatedSettings, MemoryOfEachDevice) {
  const Settings s = with("MEMORY", "1G,64M,1000");
  EXPECT_EQ(s.memory_of(0), size_t(1) << 30);
  EXPECT_EQ(s.memory_of(1), size_t(64) << 20);
  EXPECT_EQ(s.memory_of(2), 1000u);
  EXPECT_EQ(s.memory_of(7), 1000u);  // the last value is the rest's
}

TEST(EmulatedSettings, Peers) {
  EXPECT_TRUE(with("PEER", "all").can_access_peer(0, 3));
  EXPECT_FALSE(with("PEER", "all").can_access_peer(3, 3));
  EXPECT_FALSE(with("PEER", "none").can_access_peer(0, 1));
  const Settings s = with("PEER", "0-1,2-3");
  EXPECT_TRUE(s.can_access_peer(0, 1) && s.can_access_peer(1, 0) && s.can_access_peer(3, 2));
  EXPECT_FALSE(s.can_access_peer(1, 2) || s.can_access_peer(0, 3));
}

TEST(EmulatedSettings, BrokenPeers) {
  EXPECT_FALSE(Settings().peer_is_broken(0, 1));
  const Settings s = with("BROKEN_PEER", "2-0");
  EXPECT_TRUE(s.peer_is_broken(0, 2) && s.peer_is_broken(2, 0));
  EXPECT_FALSE(s.peer_is_broken(0, 1));
}

TEST(EmulatedSettings, LostPeers) {
  EXPECT_FALSE(Settings().peer_is_lost(0, 1));
  const Settings s = with("LOST_PEER", "2-0");
  EXPECT_TRUE(s.peer_is_lost(0, 2) && s.peer_is_lost(2, 0));
  EXPECT_FALSE(s.peer_is_lost(0, 1));
}

TEST(EmulatedSettings, WhatIsNotUnderstoodIsNamed) {
  EXPECT_REFUSED("DEVICES", "many",
                 "RAMET_EMULATED_DEVICES is not understood: got \"many\", expected 0 to 64");
  EXPECT_REFUSED("DEVICES", "65", "got \"65\"");
  EXPECT_REFUSED("DEVICES", "-1", "got \"-1\"");
  EXPECT_REFUSED("MEMORY", "64M,", "RAMET_EMULATED_MEMORY");
  EXPECT_REFUSED("MEMORY", "64Q", "such as 64M or 1G,256M");
  EXPECT_REFUSED("MEMORY", "-1", "got \"-1\"");
  EXPECT_REFUSED("MEMORY", "nan", "got \"nan\"");
  EXPECT_REFUSED("DRIVER", "new", "a version such as 13000, or 0");
  EXPECT_REFUSED("DRIVER_MEMORY", "1M,2M", "bytes, such as 64M");
  EXPECT_REFUSED("PEER", "0-", "all, none or pairs such as 0-1,2-3");
  EXPECT_REFUSED("PEER", "0:1", "got \"0:1\"");
  EXPECT_REFUSED("BROKEN_PEER", "all", "pairs such as 0-1,2-3");
  EXPECT_REFUSED("LOST_PEER", "0", "pairs such as 0-1,2-3");
  EXPECT_REFUSED("PEER_GBPS", "fast", "10^9 bytes a second");
  EXPECT_REFUSED("THREADS", "sideways", "forward, reverse or random:SEED");
  EXPECT_REFUSED("THREADS", "random:", "got \"random:\"");
  EXPECT_REFUSED("STREAMS", "random:x", "async, eager, lazy or random:SEED");
  EXPECT_REFUSED("STACK_KB", "1", "16 to 65536");
  EXPECT_REFUSED("REPORTS", "yes", "0 or 1");
  EXPECT_REFUSED("DRIVER_WAITS", "2", "0 or 1");
}

}  // namespace
}  // namespace ramet::emulated
