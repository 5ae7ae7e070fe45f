// Damaged files of other programs. Each is read as what it says, or refused by one Error that names
// the file, and costs no more memory than its bytes.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// The checked-in arrays and ones of our own, damaged: alone, in archives, and in archives with
/// right checksums around damaged arrays.
void check_npy(Tape& tape);
void check_npz(Tape& tape);
/// State dicts, checkpoints and LibTorch's archives: their zip's bytes; their pickle, version, byte
/// order or storages in an archive that is right otherwise.
void check_pt(Tape& tape);
/// The same before PyTorch 1.6.
void check_old_pt(Tape& tape);
/// Pickles made of opcodes, rather than damaged ones.
void check_pickle(Tape& tape);
/// An index of safetensors files, and its files.
void check_index(Tape& tape);
/// A mapped safetensors file has the same content as a loaded one.
void check_mapped(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
