// std::random_device of libstdc++ asks for this function of glibc 2.36, and is in every program
// that has libstdc++ inside: with one of its own a package runs with glibc 2.35, too
// (Ubuntu 22.04).
#include <sys/random.h>

#include <cstdint>

extern "C" uint32_t arc4random() noexcept {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {}
  return number;
}
