#include "runtime/base/atomic_file.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string name = testing::TempDir() + "ramet_files_XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() {
    for (const std::string& f : files()) ::unlink((path + "/" + f).c_str());
    ::rmdir(path.c_str());
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    DIR* d = ::opendir(path.c_str());
    while (const dirent* e = ::readdir(d))
      if (e->d_name[0] != '.') out.push_back(e->d_name);
    ::closedir(d);
    return out;
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return in ? s.str() : "(absent)";
}

TEST(AtomicFile, AppearsWhole) {
  Folder folder;
  const std::string path = folder / "a.bin";
  std::string data(300000, 'x');
  data[7] = '\0';
  {
    AtomicFile f(path);
    f.write(data.substr(0, 1000));
    f.write(data.data() + 1000, data.size() - 1000);
    EXPECT_EQ(contents(path), "(absent)");
    f.commit();
    EXPECT_EQ(contents(path), data);
    EXPECT_ERROR(f.commit(), Error, "a.bin");
    EXPECT_ERROR(f.write("more"), Error, "a.bin");
  }
  EXPECT_EQ(folder.files(), std::vector<std::string>{"a.bin"});
}

TEST(AtomicFile, WithoutCommitTheOldStays) {
  Folder folder;
  const std::string path = folder / "a";
  write_file_atomically(path, "old");
  {
    AtomicFile f(path);
    f.write("new");
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(folder.files().size(), 1u);
  write_file_atomically(path, "");
  EXPECT_EQ(contents(path), "");
}

TEST(AtomicFile, KeepsModeAndLinks) {
  Folder folder;
  write_file_atomically(folder / "real", "1");
  ::chmod((folder / "real").c_str(), 0640);
  ASSERT_EQ(::symlink("real", (folder / "link").c_str()), 0);
  write_file_atomically(folder / "link", "2");
  EXPECT_EQ(contents(folder / "real"), "2");
  struct stat s;
  ASSERT_EQ(::lstat((folder / "link").c_str(), &s), 0);
  EXPECT_TRUE(S_ISLNK(s.st_mode));
  ASSERT_EQ(::stat((folder / "real").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
}

TEST(AtomicFile, ErrorsNamePathAndReason) {
  Folder folder;
  EXPECT_ERROR(
      AtomicFile(folder / "none/a"), Error,
      "[write_file] cannot make a file: got \"No such file or directory\" for " + folder.path);
  EXPECT_ERROR(AtomicFile{folder.path}, Error, "Is a directory");
  EXPECT_ERROR(write_file_atomically("/proc/nothing/here", "x"), Error, "/proc/nothing/here");
  EXPECT_ERROR(AtomicFile(""), Error, "path: got \"\", expected the name of a file");
  EXPECT_ERROR(AtomicFile("folder/"), Error, "path: got \"folder/\"");
}

TEST(AtomicFile, TwoWritersDoNotMix) {
  Folder folder;
  const std::string path = folder / "a";
  AtomicFile one(path), two(path);
  one.write("11");
  two.write("2");
  two.commit();
  EXPECT_EQ(contents(path), "2");
  one.commit();
  EXPECT_EQ(contents(path), "11");
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(AtomicFile, RelativePaths) {
  Folder folder;
  char here[4096];
  ASSERT_NE(::getcwd(here, sizeof here), nullptr);
  ASSERT_EQ(::chdir(folder.path.c_str()), 0);
  write_file_atomically("b", "x");
  EXPECT_EQ(contents(folder / "b"), "x");
  ASSERT_EQ(::chdir(here), 0);
}

// Killed at any moment: the name holds one of the versions, complete.
TEST(AtomicFile, SurvivesKill) {
  Folder folder;
  const std::string path = folder / "a";
  write_file_atomically(path, std::string(100000, 'a'));
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        try {
          write_file_atomically(path, std::string(100000, c));
        } catch (...) { ::_exit(1); }
      }
    }
    ::usleep(static_cast<useconds_t>(500 + 700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::string now = contents(path);
    ASSERT_EQ(now.size(), 100000u);
    ASSERT_EQ(now, std::string(100000, now[0]));
  }
}

}  // namespace
}  // namespace ramet
