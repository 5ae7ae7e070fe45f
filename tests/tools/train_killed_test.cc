// A run that is killed at any moment leaves a whole checkpoint, and goes on from it to the same
// bits.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "nn/serialize/archive.h"
#include "tests/tools/train_support.h"
#include "tools/training/run.h"

namespace ramet::training {
namespace {

// The parent starts no thread, so that its children may.
pid_t start(const Options& o) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(9);
    int code = 8;
    try {
      code = run(o);
    } catch (...) {}
    ::_exit(code);
  }
  return child;
}
int finish(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(TrainTest, KilledAtAnyMoment) {
  Options o = options("whole");
  o.epochs = 30;
  o.model = "mlp";
  ASSERT_EQ(finish(start(o)), 0);
  o.out = folder_ + "/killed";
  int killed = 0, resumed = 0;
  for (useconds_t wait = 3000; wait < 200000; wait = wait * 7 / 4) {
    o.resume = exists(out("checkpoint", "killed"));
    resumed += o.resume;
    const pid_t child = start(o);
    ::usleep(wait);
    ::kill(child, SIGKILL);
    const int status = finish(child);
    if (!WIFSIGNALED(status)) {
      ASSERT_EQ(status, 0);
      break;
    }
    ++killed;
    if (!exists(out("checkpoint", "killed"))) continue;
    serialize::InputArchive archive;
    ASSERT_NO_THROW(archive.load_from(out("checkpoint", "killed"))) << "after " << wait << " us";
    IValue step;
    archive.read("step", step);
    EXPECT_GT(step.toInt(), 0);
  }
  EXPECT_GT(killed, 0);
  o.resume = exists(out("checkpoint", "killed"));
  ASSERT_EQ(finish(start(o)), 0);
  EXPECT_EQ(digest("killed"), digest("whole"));
  std::printf("killed %d times, resumed %d times\n", killed, resumed);
}

}  // namespace
}  // namespace ramet::training
