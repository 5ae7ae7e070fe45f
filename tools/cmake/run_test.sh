# run_test.sh FOLDER PROGRAM: a test as Bazel runs it, with an empty folder for its files and without the user's language.
set -e
rm -rf "$1"
mkdir -p "$1"
unset LANG LANGUAGE LC_ALL LC_CTYPE LC_NUMERIC LC_MESSAGES OMP_NUM_THREADS
export TEST_TMPDIR="$1" TEST_SRCDIR="$PWD" TEST_WORKSPACE=.
exec "$2"
