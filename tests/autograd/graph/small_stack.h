// A thread with a small stack: recursion over a long graph would overflow it.
#pragma once
#include <gtest/gtest.h>
#include <pthread.h>

namespace ramet {

/// Runs `body` as under `ulimit -s 256`.
inline void on_small_stack(void (*body)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* f) -> void* {
                  reinterpret_cast<void (*)()>(f)();
                  return nullptr;
                },
                reinterpret_cast<void*>(body)),
            0);
  pthread_join(thread, nullptr);
}

}  // namespace ramet
