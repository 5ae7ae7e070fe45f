# run_test.sh FOLDER PROGRAM: a test as Bazel runs it, with an empty folder for its files.
set -e
rm -rf "$1"
mkdir -p "$1"
export TEST_TMPDIR="$1" TEST_SRCDIR="$PWD" TEST_WORKSPACE=.
exec "$2"
