// The texts of faults: which kernel, block, thread, file and line.
#pragma once
#include <string>

#include "tools/emulated_gpu/executor/grid.h"

namespace ramet::emulated {

/// "file.cu:12": the file without its folders; without the line where it is 0.
std::string place(const char* file, int line);
/// "(1,2,3)".
std::string text_of(uint3 index);

/// "file.cu:12" or the function's name of a code address, by addr2line: slow, and only called when
/// there is something to report. "?" where nothing is known.
std::string source_line_of(const void* code);
std::string function_name_of(const void* code);

/// Prints a report as the settings say, and stops the program if they say so.
void publish(const std::string& report);

}  // namespace ramet::emulated
