# Everyday commands. What each does in full is in CMakePresets.json and scripts/.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-long test-arm test-arm-engines test-python function-errors function-errors-arm complex-errors attack attack-numpy bench bench-peers bench-compile asan tsan fuzz check format check-format check-compilers clean deps

JOBS ?= $(shell nproc)
BENCH_ARGS ?=
CALLS ?= 0..99999
COMPILERS ?=
DECODERS ?= 0..999
PEERS_ARGS ?=
EIN_PEERS ?= .cache/peers
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
SEEDS ?= 0..1999
TYPED ?= 0..1999

help:
	@echo 'make demo     train a small Transformer on Shakespeare, about two minutes, and let it write'
	@echo 'make test     build everything and run the tests, some minutes'
	@echo 'make test-long   run the tests that take long'
	@echo 'make test-arm    build for AArch64 and run the tests of the CPU under QEMU; make test-arm-engines a few of them'
	@echo 'make test-python  install the Python module with pip, from PyPI what it is built and tested with, and run its tests'
	@echo 'make function-errors  measure functions on all f32 numbers and write the tables of docs/functions.md, about an hour;'
	@echo '              make function-errors-arm on a part of them on an emulated AArch64'
	@echo 'make complex-errors   measure functions of complex numbers and write the table of docs/complex.md'
	@echo 'make attack   run random programs in every way, and in NumPy and PyTorch   (SEEDS=0..99999 DECODERS=0..9999 TYPED=0..99999)'
	@echo 'make attack-numpy   single random calls beside NumPy, and the table of docs/numpy.md   (CALLS=0..99999)'
	@echo 'make bench    run the benchmarks              (BENCH_ARGS="--filter TEXT --json")'
	@echo 'make bench-peers     the same patterns in PyTorch, NumPy, JAX and others   (PEERS_ARGS="--quick")'
	@echo 'make bench-compile   how long compiling a program with ein takes'
	@echo 'make asan     run the tests under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make tsan     run the tests of what threads share under ThreadSanitizer'
	@echo 'make check    run all of these that test, and say how each ended; hours'
	@echo 'make fuzz     run every fuzz target for a while              (FUZZ_SECONDS=60 each, FUZZ_TARGETS="npy log")'
	@echo 'make format   format the sources with clang-format; make check-format says whether they are'
	@echo 'make check-compilers   read all sources with GCC and Clang, libstdc++ and libc++, C++20 and C++23; about an hour'
	@echo '                       (COMPILERS="libc++-c++23 --paths ^src/" a part)'
	@echo 'make clean    remove every build folder'
	@echo 'make deps     install what is missing to build ein, with apt-get'
	@echo 'JOBS=n        compile and test n at a time            (as many as there are cores)'

deps:
	@scripts/install-dependencies

demo: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target ein_command
	@EIN_VERIFY=1 build/tools/ein train --data samples/shakespeare.txt --out build/demo --max-iters 6000 --resume
	@echo
	@build/tools/ein sample --from build/demo --prompt 'ROMEO:' --tokens 400
	@echo 'build/demo has the checkpoints, log.jsonl and loss.svg.'

test:
	scripts/install-dependencies test
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

test-long:
	scripts/install-dependencies test
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	ctest --preset release-long -j $(JOBS)

test-arm:
	scripts/install-dependencies test arm
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ein_command
	cmake --preset arm
	cmake --build --preset arm -j $(JOBS) --target ein_tests ein_command
	ctest --preset arm -j $(JOBS)

test-arm-engines:
	scripts/install-dependencies test arm
	cmake --preset arm
	cmake --build --preset arm -j $(JOBS) --target ein_engine_tests
	ctest --preset arm-engines -j $(JOBS)

test-python:
	scripts/install-dependencies python
	scripts/python-module

function-errors:
	scripts/install-dependencies test
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ein_function_errors
	build/tests/ein_function_errors --write docs/functions.md

complex-errors:
	scripts/install-dependencies test
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ein_complex_errors
	build/tests/ein_complex_errors docs/complex.md

function-errors-arm:
	scripts/install-dependencies test arm
	cmake --preset arm
	cmake --build --preset arm -j $(JOBS) --target ein_function_errors
	qemu-aarch64 -L /usr/aarch64-linux-gnu build-arm/tests/ein_function_errors --one-in 10007 --doubles 100000 --write docs/functions.md

# Python packages that ein is compared with: those files alone whose hashes are written down.
define install_peers
	test -x $(EIN_PEERS)/bin/python || python3 -m venv $(EIN_PEERS)
	$(EIN_PEERS)/bin/python -m pip install --quiet --require-hashes -r bench/peers/requirements.txt
endef

# The campaign and what it is compared with.
define attack_tools
	scripts/install-dependencies peers
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ein_attack
	$(install_peers)
endef

attack:
	$(attack_tools)
	build/tests/ein_attack --seeds $(SEEDS) --write build/attack.jsonl
	build/tests/ein_attack --windows $(SEEDS) --write build/windows.jsonl
	build/tests/ein_attack --orders $(SEEDS)
	build/tests/ein_attack --decoders $(DECODERS)
	build/tests/ein_attack --modes $(SEEDS)
	build/tests/ein_attack --forks $(SEEDS)
	scripts/typed-programs $(TYPED) --jobs $(JOBS)
	scripts/in-small-caches build/tests/ein_attack --seeds $(SEEDS)
	scripts/in-small-caches build/tests/ein_attack --decoders $(DECODERS)
	$(EIN_PEERS)/bin/python tests/attack/peers.py build/attack.jsonl
	$(EIN_PEERS)/bin/python tests/attack/peers.py build/windows.jsonl

attack-numpy:
	$(attack_tools)
	build/tests/ein_attack --calls $(CALLS) --write build/calls.jsonl
	$(EIN_PEERS)/bin/python tests/attack/numpy_calls.py build/calls.jsonl --write docs/numpy.md

bench: deps
	cmake --preset release -D EIN_BENCH=ON
	cmake --build --preset release -j $(JOBS) --target ein_bench
	build/bench/ein_bench $(BENCH_ARGS)

bench-peers:
	scripts/install-dependencies peers
	cmake --preset release -D EIN_BENCH=ON
	cmake --build --preset release -j $(JOBS) --target ein_peer_server \
	  $(addprefix ein_peer_server_,$(filter v2 v3,$(subst =, ,$(PEERS_ARGS))))
	$(install_peers)
	$(EIN_PEERS)/bin/python bench/peers/run.py $(PEERS_ARGS)

bench-compile: deps
	bench/compile_time.sh

asan: deps
	cmake --preset asan -D EIN_SANITIZE_ALL=ON
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

tsan: deps
	cmake --preset tsan -D EIN_SANITIZE_ALL=ON
	cmake --build --preset tsan -j $(JOBS) --target ein_tests
	ctest --preset tsan -j $(JOBS) -R '^all_'

fuzz:
	scripts/install-dependencies fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	scripts/run-fuzzers build-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

format:
	scripts/install-dependencies format
	git ls-files '*.cpp' '*.hpp' | xargs clang-format -i

check-format:
	scripts/install-dependencies format
	git ls-files '*.cpp' '*.hpp' | xargs clang-format --dry-run --Werror

check:
	scripts/check

check-compilers:
	scripts/install-dependencies test compilers
	scripts/check-compilers $(COMPILERS) --jobs $(JOBS)

clean:
	rm -rf build build-*/
