#ifndef C10_MACROS_EXPORT_H_
#define C10_MACROS_EXPORT_H_
#include <c10/macros/cmake_macros.h>
#define C10_API
#endif
