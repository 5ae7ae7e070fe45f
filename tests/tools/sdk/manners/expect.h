// What the programs of this folder say when Ramet misbehaves, and how they count threads.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::printf("FAILED: line %d: expected %s\n", __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

/// Of this process.
inline int threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}
