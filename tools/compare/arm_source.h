// Includes cases_<RAMET_COMPARE_FILE>.inc with what it needs. The including file has chosen the
// library.
#pragma once
#include "tools/compare/conditions.h"
#include "tools/compare/forms.h"
#include "tools/compare/runner.h"

#define RAMET_COMPARE_TEXT_(x) #x
#define RAMET_COMPARE_TEXT(x) RAMET_COMPARE_TEXT_(x)
#define RAMET_COMPARE_JOIN_(a, b) a##b
#define RAMET_COMPARE_JOIN(a, b) RAMET_COMPARE_JOIN_(a, b)
#define RAMET_COMPARE_JOINED(prefix) RAMET_COMPARE_JOIN(prefix, RAMET_COMPARE_FILE)
#define RAMET_COMPARE_INCLUDE RAMET_COMPARE_TEXT(RAMET_COMPARE_JOIN(cases_, RAMET_COMPARE_FILE).inc)

#include RAMET_COMPARE_INCLUDE
