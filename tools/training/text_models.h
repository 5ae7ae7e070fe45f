// Models of texts, character by character: a GPT and an LSTM.
#pragma once
#include <string>

#include "tools/training/models.h"

namespace ramet::training {

/// Is `name` one of them?
bool is_text_model(const std::string& name);

/// "gpt": four blocks of causal attention and GELU, 128 wide. "lstm": two layers, 128 wide. A piece
/// of symbols, (N, length) floats as a loader makes them of bytes, becomes the logits of each next
/// symbol, (N, symbols, length). Dropout stands between the blocks or layers.
nn::Sequential make_text_model(const std::string& name, const ImageShape& shape, double dropout);

/// Pieces of 64 characters, one at every eighth, each with what follows its characters; of the
/// first nine tenths of the file, and for tests of the rest. The first `limit` of both (0: all).
/// An Error for a file that cannot be read or is too short.
ImageData load_text(const std::string& path, int64_t limit);

/// How a model goes on behind the first characters of `data`: `count` characters, drawn.
std::string text_of(nn::Sequential& model, const ImageData& data, Device device, int64_t count);

}  // namespace ramet::training
