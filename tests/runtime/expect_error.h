// EXPECT_ERROR(statement, Type, "text"): the statement throws Type and its message contains the
// text.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"

#define EXPECT_ERROR(statement, Type, text)                                     \
  try {                                                                         \
    statement;                                                                  \
    ADD_FAILURE() << "no exception from " #statement;                           \
  } catch (const Type& e) {                                                     \
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what(); \
  }
