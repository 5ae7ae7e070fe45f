// Files of ids, which a tokenizer made of a text.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet::training {

/// The ids (N) of a file as uint16. NAME.bin holds ids of 16 bits, little-endian: as nanoGPT writes
/// them, or after llm.c's header of 256 int32, which is known by its first number. That is no id of
/// GPT-2. The bytes of any other file are its ids. An Error for a file that cannot be read, a
/// header that does not fit, and an id that is not less than `symbols`.
Tensor load_ids(const std::string& path, int64_t symbols);

}  // namespace ramet::training
