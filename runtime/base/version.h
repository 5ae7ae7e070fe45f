// The version of these headers; `ramet::version()` (runtime/base/config.h) is that of the library.
//
// 0.y: y grows when a program that compiles may break. So libramet.so.0.y has one set of headers.
#pragma once

#define RAMET_VERSION_MAJOR 0
#define RAMET_VERSION_MINOR 1
#define RAMET_VERSION_PATCH 0
#define RAMET_VERSION "0.1.0"
/// For comparisons: 0.1.0 is 100.
#define RAMET_VERSION_NUMBER \
  (RAMET_VERSION_MAJOR * 10000 + RAMET_VERSION_MINOR * 100 + RAMET_VERSION_PATCH)
