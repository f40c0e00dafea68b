# Entry point for developers. Every target installs the packages that it needs and reports them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
# OpenBLAS and OpenMP settings of the shell would change test and benchmark results.
CLEAN_ENV := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST))  # those that help lists

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@deploy/install_packages.sh
	@deploy/make_venv.sh

build: setup ## Build the engine, the clients and the Python package into build/
	@$(PYTHON) deploy/build.py release

EXAMPLE ?= fashion_mnist
# Packages of one example, without their dependencies.
INSTALL = echo "venv: installing $$(grep -v '^\#' $(1) | xargs)" && $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps -r $(1)
demo: setup ## Train an image classifier on a daemon, from a client process, or run another program: EXAMPLE=char_gpt
	@$(PYTHON) deploy/build.py release teletensord teletensor_python  # the demo's targets only; make test builds the rest
	@$(if $(wildcard examples/$(EXAMPLE).requirements.txt),$(call INSTALL,examples/$(EXAMPLE).requirements.txt))
	@$(CLEAN_ENV) $(PYTHON) examples/$(EXAMPLE).py

test: build ## Run every test
	@$(call INSTALL,examples/semantic_search.requirements.txt)
	@deploy/install_optional.sh
	@$(CLEAN_ENV) deploy/run_tests.sh all

check: build ## Run the fast tests (under two minutes)
	@$(CLEAN_ENV) deploy/run_tests.sh fast

coverage: build ## List PyTorch names that teletensor lacks, by use count: NAMES=file with lines count|name
	@test -n "$(NAMES)" || { echo "make coverage NAMES=file"; exit 1; }
	@PYTHONPATH=build/python $(PYTHON) -m tests.conformance.coverage --names $(NAMES) --out build/generated/docs/coverage.md
	@sed -n 1,11p build/generated/docs/coverage.md

cpp-docs: build ## Write the reference of the C++ client with Doxygen: build/cpp-docs/html
	@deploy/install_packages.sh deploy/packages_docs.txt
	@mkdir -p build/cpp-docs
	@(cat deploy/docs/Doxyfile; echo OUTPUT_DIRECTORY=build/cpp-docs) | doxygen -

names: build ## List public names of PyTorch that are missing or not implemented: docs/names.md
	@PYTHONPATH=build/python $(PYTHON) -m tests.conformance.public --write

conformance: build ## Run third-party test suites: SUITES=folder with a checkout of array-api-tests
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.run $(if $(SUITES),--suites $(SUITES))

libraries: build ## Run programs of other libraries with teletensor and PyTorch, ONLY="timm peft", RESUME=1: docs/conformance.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.libraries $(if $(ONLY),--only $(ONLY)) $(if $(RESUME),--resume)

dist-examples: build ## Run PyTorch's distributed examples with both packages: CHECKOUT=folder of pytorch/examples, NANOGPT=folder
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.examples --checkout $(CHECKOUT) $(if $(NANOGPT),--nanogpt $(NANOGPT)) $(if $(ONLY),--only $(ONLY))

unit-tests: build ## Run PyTorch's unit tests with both packages: CHECKOUT=folder of pytorch/pytorch, ONLY="test_indexing nn/test_init", EVERY=3 for a third
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.unit_tests --checkout $(CHECKOUT) $(if $(ONLY),--only $(ONLY)) $(if $(EVERY),--every $(EVERY))

op-db: build ## Compare with PyTorch on PyTorch's operator samples: docs/op_db.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.run --only "PyTorch's op_db"

module-db: build ## Compare with PyTorch on PyTorch's module and optimizer samples: docs/module_db.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.module_db --json build/module_db.json --page docs/module_db.md

signatures: build ## Compare the parameters of all public callables with PyTorch's declarations: docs/signatures.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.signatures

differential: build ## Call public functions in both packages with each argument moved from its default: docs/differential.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.differential --page docs/differential.md

captures: build ## Compile and export PyTorch's operator and module samples, and compare graphs with PyTorch's: docs/compile.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.captures

dist-cases: build ## Run PyTorch's tests of torch.distributed: docs/distributed-checklist.md
	@$(CLEAN_ENV) $(PYTHON) -m tests.conformance.distributed

bench-operators: build ## Compare the speed of every operator at three sizes with PyTorch: build/bench-operators.json and .png
	@$(CLEAN_ENV) $(PYTHON) -m benchmarks.operators --peers

bench-link: build ## Measure training over links with delay and limited rate: a table, and build/bench-link.json
	@$(CLEAN_ENV) $(PYTHON) -m benchmarks.link

bench: build ## Compare teletensor's speed with hardware limits: a table of ratios, and build/bench.json
	@$(CLEAN_ENV) $(PYTHON) -m benchmarks.run

bench-peers: build ## Run bench and include PyTorch, installed in a separate environment
	@$(CLEAN_ENV) $(PYTHON) -m benchmarks.run --peers

# For what other machines run: builds for development contain the kernels of this machine's instruction set only.
ALL_ISAS = -D TT_KERNEL_ISAS=all
PREFIX ?= /usr/local
install: setup ## Install the daemon, the C++ client and its CMake package under PREFIX
	@$(PYTHON) deploy/build.py $(ALL_ISAS) release
	@cmake --install build --prefix $(PREFIX)

wheel: setup ## Build the wheels teletensor (the client) and teletensor-engine, which need no Debian packages, into dist/
	@deploy/build_wheels.sh

deb: setup ## Build Debian packages of the engine, the C++ and the Python client, into dist/
	@deploy/install_packages.sh deploy/packages_deb.txt
	@$(PYTHON) deploy/build.py $(ALL_ISAS) release teletensord teletensor_python tt_client tt_api
	@deploy/debian/build.sh

deb-test: deb ## Check the Debian packages, and run them in a new Debian system, as root
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r deploy/requirements_packaging.txt
	@deploy/debian/check.sh

cuda: setup ## Compile the CUDA plug-in if a toolkit is installed (needs no GPU), for two architectures or ARCHITECTURES=90
	@$(if $(ARCHITECTURES),ARCHITECTURES="$(ARCHITECTURES)") deploy/gpu/compile.sh

gpu-bundle: setup ## Pack a bundle to run and check teletensor on a GPU machine: dist/gpu-bundle.tar.xz
	@deploy/gpu/bundle.sh

asan: build ## Run the tests under AddressSanitizer and UBSan: C++, and Python through such a daemon
	@deploy/install_packages.sh deploy/packages_clang.txt
	@$(PYTHON) deploy/build.py asan
	@$(CLEAN_ENV) deploy/run_tests.sh asan

tsan: build ## Run the tests under ThreadSanitizer: C++, and Python through such a daemon
	@$(PYTHON) deploy/build.py tsan
	@$(CLEAN_ENV) deploy/run_tests.sh tsan

FUZZ_SECONDS ?= 60
fuzz: build ## Fuzz each target for FUZZ_SECONDS (60) with libFuzzer under ASan and UBSan
	@deploy/install_packages.sh deploy/packages_clang.txt
	@$(PYTHON) deploy/build.py asan fuzzers
	@$(CLEAN_ENV) $(PYTHON) -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

fuzz-release: build ## Fuzz each target for FUZZ_SECONDS in the ordinary build, without libFuzzer
	@$(CLEAN_ENV) $(PYTHON) -m tests.fuzz.run --release --seconds $(FUZZ_SECONDS)

adversary: build ## Train while hostile clients attack the daemon, and check that training and daemon are unaffected
	@$(CLEAN_ENV) $(PYTHON) -m tests.adversary

chaos: build ## Cut links, kill engines, fill disks, set clocks... during training runs, and check that nothing is lost: SCALE=10
	@deploy/install_packages.sh deploy/packages_chaos.txt
	@$(CLEAN_ENV) $(PYTHON) -m tests.chaos $(if $(SCALE),--scale $(SCALE)) $(if $(ONLY),--only "$(ONLY)")

skew-test: build ## Run a client of an older commit with this engine, and this client with its engine (builds a wheel of it)
	@$(CLEAN_ENV) $(PYTHON) -m tests.skew

nightly: build ## Run the checks that take too long for every change, and list which failed: ONLY="differential op-db"
	@$(PYTHON) deploy/nightly.py $(ONLY)

cluster-test: setup ## Run the Slurm and MPI scripts of deploy/ on this machine, as root
	@deploy/install_packages.sh deploy/packages_cluster.txt
	@$(PYTHON) deploy/build.py release teletensor_python
	@deploy/slurm/check.sh
	@deploy/mpi/check.sh

container-test: setup ## Build the engine's image with buildah and run it with podman, compose and play kube, as root
	@deploy/install_packages.sh deploy/packages_container.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r deploy/requirements_packaging.txt
	@$(PYTHON) deploy/build.py release teletensord teletensor_python
	@deploy/container/check.sh

service-test: setup ## Scrape an engine with Prometheus, check the alerts, and open its page in headless Chromium
	@deploy/install_packages.sh deploy/packages_service.txt
	@$(PYTHON) deploy/build.py release teletensord teletensor_python
	@$(CLEAN_ENV) $(PYTHON) -m pytest -q tests/service/*_checks.py

format: ## Format C++ and Python
	@git ls-files '*.cc' '*.h' '*.cu' | xargs clang-format -i
	@$(PYTHON) -m pip install --quiet ruff && $(PYTHON) -m ruff format python tests benchmarks examples engine/codegen

lint: setup ## Check locks with clang's thread-safety analysis, C++ with clang-tidy, Python with ruff, and the lines of each folder
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check ruff clang-tidy==23.1.4
	@$(PYTHON) deploy/build.py release tt_generated tt_proto  # the headers that the sources include
	@$(PYTHON) deploy/lint.py
	@$(PYTHON) deploy/check_size.py

docs: ## Build the documentation site, also for reading without a network: build/site/index.html
	@deploy/docs/build.sh

clean: ## Remove what was built
	@rm -rf build build-*/ dist
