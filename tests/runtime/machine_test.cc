#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/machine_internal.h"

namespace ramet {
namespace {

using detail::GroupLimits;

// A folder with the files that a process would see from its root.
class Root {
 public:
  explicit Root(const std::vector<std::pair<std::string, std::string>>& files) {
    std::string pattern = testing::TempDir() + "/machine_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    for (const auto& [name, text] : files) {
      for (size_t at = 1; (at = name.find('/', at)) != std::string::npos; ++at)
        mkdir((folder_ + name.substr(0, at)).c_str(), 0700);
      std::ofstream(folder_ + name) << text;
    }
  }
  GroupLimits limits() const { return detail::group_limits(folder_); }
  int threads(int processors) const { return detail::usable_threads(limits(), processors); }

 private:
  std::string folder_;
};

const std::string kMounts2 =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Machine, NoGroupsNoLimits) {
  for (const Root& root :
       {Root({}), Root({{"/proc/self/cgroup", "0::/\n"}, {"/proc/self/mountinfo", kMounts2}}),
        Root(
            {{"/proc/self/cgroup", "nonsense\n:\n::\n"}, {"/proc/self/mountinfo", "a b - c\n - "}}),
        Root({{"/proc/self/cgroup", "0::/\n"},
              {"/proc/self/mountinfo", kMounts2},
              {"/sys/fs/cgroup/cpu.max", "max 100000\n"},
              {"/sys/fs/cgroup/memory.max", "max\n"},
              {"/sys/fs/cgroup/memory.high", ""}})}) {
    EXPECT_EQ(root.limits().processors, 0);
    EXPECT_EQ(root.limits().memory, 0);
    EXPECT_EQ(root.threads(64), 64);
    EXPECT_EQ(detail::group_memory_in_use(root.limits()), 0);
  }
}

TEST(Machine, AQuotaIsRoundedUpToThreads) {
  const auto threads = [](const std::string& quota, int processors) {
    return Root({{"/proc/self/cgroup", "0::/\n"},
                 {"/proc/self/mountinfo", kMounts2},
                 {"/sys/fs/cgroup/cpu.max", quota}})
        .threads(processors);
  };
  EXPECT_EQ(threads("150000 100000\n", 64), 2);
  EXPECT_EQ(threads("100000 100000\n", 64), 1);
  EXPECT_EQ(threads("1000 100000\n", 64), 1);
  EXPECT_EQ(threads("400000 100000\n", 64), 4);
  EXPECT_EQ(threads("400001 100000\n", 64), 5);
  EXPECT_EQ(threads("400000 100000\n", 3), 3);  // the processors that the process may run on
  EXPECT_EQ(threads("75000 50000\n", 64), 2);
  for (const char* none : {"0 100000\n", "-1 100000\n", "150000\n", "150000 0\n", "x y\n"})
    EXPECT_EQ(threads(none, 64), 64) << none;
}

TEST(Machine, OfGroupsInGroupsTheSmallest) {
  const Root root({{"/proc/self/cgroup", "0::/work/job/step\n"},
                   {"/proc/self/mountinfo", kMounts2},
                   {"/sys/fs/cgroup/work/cpu.max", "250000 100000\n"},
                   {"/sys/fs/cgroup/work/memory.max", "4000000\n"},
                   {"/sys/fs/cgroup/work/job/cpu.max", "max 100000\n"},
                   {"/sys/fs/cgroup/work/job/memory.max", "3000000\n"},
                   {"/sys/fs/cgroup/work/job/memory.high", "2000000\n"},
                   {"/sys/fs/cgroup/work/job/memory.stat", "anon 500000\nfile 900000\n"},
                   {"/sys/fs/cgroup/work/job/step/cpu.max", "800000 100000\n"},
                   {"/sys/fs/cgroup/work/job/step/memory.max", "9000000\n"}});
  EXPECT_EQ(root.limits().processors, 2.5);
  EXPECT_EQ(root.threads(64), 3);
  EXPECT_EQ(root.limits().memory, 2000000);
  EXPECT_EQ(detail::group_memory_in_use(root.limits()), 500000);
}

// Its own group lies at the mount point, with or without the name that it has outside.
TEST(Machine, InsideAContainer) {
  for (const char* mounted : {"/", "/docker/abc"}) {
    const Root root({{"/proc/self/cgroup", "0::/docker/abc\n"},
                     {"/proc/self/mountinfo", "29 22 0:26 " + std::string(mounted) +
                                                  " /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
                     {"/sys/fs/cgroup/cpu.max", "50000 100000\n"},
                     {"/sys/fs/cgroup/memory.max", "1073741824\n"}});
    EXPECT_EQ(root.threads(64), 1);
    EXPECT_EQ(root.limits().memory, 1073741824);
  }
}

TEST(Machine, VersionOne) {
  const std::string mounts =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "34 31 0:32 /kube /sys/fs/cgroup/memory rw master:2 - cgroup cgroup rw,memory\n";
  const Root root(
      {{"/proc/self/cgroup",
        "5:cpuset:/other\n4:memory:/kube/pod/c\n2:cpu,cpuacct:/pod/c\n1:name=systemd:/\n"},
       {"/proc/self/mountinfo", mounts},
       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "350000\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/pod/c/cpu.cfs_quota_us", "-1\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/pod/c/cpu.cfs_period_us", "100000\n"},
       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
       {"/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "2147483648\n"},
       {"/sys/fs/cgroup/memory/pod/memory.stat", "cache 7\nrss 8\ntotal_rss 900\n"},
       {"/sys/fs/cgroup/memory/pod/c/memory.limit_in_bytes", "9223372036854771712\n"}});
  EXPECT_EQ(root.limits().processors, 3.5);
  EXPECT_EQ(root.threads(64), 4);
  EXPECT_EQ(root.limits().memory, 2147483648);
  EXPECT_EQ(detail::group_memory_in_use(root.limits()), 900);
}

// Both versions in one system: each says what its controllers limit.
TEST(Machine, BothVersions) {
  const Root root({{"/proc/self/cgroup", "4:memory:/m\n0::/u\n"},
                   {"/proc/self/mountinfo",
                    "35 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
                   {"/sys/fs/cgroup/unified/u/cpu.max", "200000 100000\n"},
                   {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "5000\n"}});
  EXPECT_EQ(root.threads(64), 2);
  EXPECT_EQ(root.limits().memory, 5000);
}

TEST(Machine, ThisOne) {
  EXPECT_GE(detail::usable_threads(), 1);
  EXPECT_LE(detail::usable_threads(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(detail::usable_memory(), int64_t{1} << 20);
  EXPECT_LE(detail::usable_memory(), static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                                         static_cast<int64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace ramet
