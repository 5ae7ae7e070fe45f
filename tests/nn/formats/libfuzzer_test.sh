#!/usr/bin/env bash
# Each reader of files and texts under libFuzzer, a minute each, from the checked-in files on. These fail: memory errors, leaks,
# exceptions that are no Error, and inputs that take long or much memory.
# usage: libfuzzer_test.sh FOLDER...   (those of the layers' archives; RAMET_FUZZ_SECONDS: other than 60; RAMET_FUZZ_READERS: not all)
set -euo pipefail

mapfile -t archives < <(find -L "$@" -name '*.a')
work=${TEST_TMPDIR:-$(mktemp -d)}
clang=$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1)
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$work/none.cc"
if [[ -z $clang ]] || ! "$clang" -fsanitize=fuzzer "$work/none.cc" -o "$work/none" 2>/dev/null; then
  echo "skipped: ${clang:-no clang} has no libFuzzer (Debian's package libclang-rt-*-dev)"
  exit 0
fi

options=(-std=c++20 -O1 -g1 -I. -fno-math-errno -ffp-contract=off -fsanitize=address -DNDEBUG)
sources=(nn/formats/{numpy,pytorch,zip}/*.cc nn/serialize/*.cc nn/data/idx.cc nn/c/*.cc nn/script/*.cc)
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} bash -c \
  "source={}; $clang ${options[*]} -fsanitize=fuzzer-no-link -c {} -o $work/\${source//\//_}.o"
objects=()
for source in "${sources[@]}"; do objects+=("$work/${source//\//_}.o"); done
"$clang" "${options[@]}" -fsanitize=fuzzer tests/nn/formats/fuzz_target.cc "${objects[@]}" -Wl,--start-group "${archives[@]}" \
  -Wl,--end-group -lzip -l:libz.a -ldl -pthread -o "$work/fuzz"

goldens=tests/nn/formats/goldens
scripts=tests/nn/script/goldens
export RAMET_FUZZ_FOLDER=$work/files
mkdir -p "$RAMET_FUZZ_FOLDER"
tensor_file() { printf '\x40\0\0\0\0\0\0\0%-64s\0\0\0\0' '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'; }
tensor_file >"$RAMET_FUZZ_FOLDER/one.safetensors"

for reader in ${RAMET_FUZZ_READERS:-npy npz pt pickle safetensors index archive idx module script debug_pkl torchscript}; do
  corpus=$work/$reader
  mkdir -p "$corpus"
  case $reader in
    npy | npz | pt) cp "$goldens"/*."$reader" "$corpus" ;;
    pickle)
      python3 - "$corpus" "$goldens"/*.pt <<'END'
import pathlib, sys, zipfile
for path in sys.argv[2:]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as z:
            data = next(z.read(n) for n in z.namelist() if n.endswith("/data.pkl"))
        (pathlib.Path(sys.argv[1]) / pathlib.Path(path).name).write_bytes(data)
END
      ;;
    torchscript) cp "$scripts"/*.pt "$corpus" ;;
    script | debug_pkl)
      python3 - "$corpus" "$reader" "$scripts"/*.pt <<'END'
import pathlib, sys, zipfile
end = {"script": ".py", "debug_pkl": ".debug_pkl"}[sys.argv[2]]
for path in sys.argv[3:]:
    with zipfile.ZipFile(path) as z:
        for number, name in enumerate(n for n in z.namelist() if n.endswith(end)):
            (pathlib.Path(sys.argv[1]) / f"{pathlib.Path(path).stem}{number}").write_bytes(z.read(name))
END
      ;;
    safetensors) tensor_file >"$corpus/one" ;;
    index) echo '{"metadata":{"total_size":4},"weight_map":{"a":"one.safetensors"}}' >"$corpus/one" ;;
    archive)
      python3 - "$corpus/one" <<'END'
import json, pathlib, struct, sys
about = {"format": 1, "undefined": ["u"], "archives": ["a.b"],
         "values": {"s": "a", "i": {"ints": [1]}, "d": {"doubles": [0.5, {"double": "nan"}]}, "t": {"tensors": 1}, "n": None}}
header = json.dumps({"__metadata__": {"ramet": json.dumps(about)}, "0": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                     "t.0": {"dtype": "U8", "shape": [2, 2], "data_offsets": [4, 8]}}).encode()
pathlib.Path(sys.argv[1]).write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
END
      ;;
    idx)
      printf '\0\0\x08\x02\0\0\0\x02\0\0\0\x01ab' >"$corpus/bytes"
      printf '\0\0\x0d\x01\0\0\0\x01abcd' | gzip -n >"$corpus/floats.gz"
      ;;
    module)
      echo '{"type":"Sequential","dtype":"float64","layers":[{"type":"Linear","in_features":2,"out_features":3},{"type":"Tanh"},
        {"type":"Conv2d","in_channels":2,"out_channels":2,"kernel_size":[3,1],"padding":"same"}]}' >"$corpus/one"
      ;;
  esac
  chmod -R u+w "$corpus"
  if ! RAMET_FUZZ_READER=$reader "$work/fuzz" "$corpus" -max_total_time="${RAMET_FUZZ_SECONDS:-60}" -max_len=16384 -timeout=10 \
    -rss_limit_mb=1500 -malloc_limit_mb=512 -seed="${RAMET_SEED:-1}" -print_final_stats=1 -artifact_prefix="$work/" >"$work/log" 2>&1; then
    tail -n 60 "$work/log"
    echo "FAILED: $reader"
    exit 1
  fi
  echo "OK: $reader: $(grep -o 'number_of_executed_units: *[0-9]*' "$work/log"), $(grep -o 'cov: [0-9]*' "$work/log" | tail -n 1)"
done
