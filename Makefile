# The two commands of the README: `make demo` and `make test`. `make help` lists the others.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CACHE := $(or $(HEADRACE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/headrace)
PYTHON := $(CACHE)/venv/bin/python
JOBS ?= $(shell nproc)
# What users run or link; the release preset's tests are built by nobody who does not ask for them.
TARGETS := headrace headrace-loader headrace-operator headrace_shared

.PHONY: help setup build wheel bundle image-context images push cluster-build cluster-up cluster-down demo test unit tsan python conformance docs chart lint e2e gpu-deps test-gpu bench-gpu property bench bench-operator fuzz fuzz-admission clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 26

setup: ## install the packages and tools that the rest needs (Debian 12)
	@scripts/setup.sh

build: setup ## release binaries in build/release/bin
	@[ -e build/release/build.ninja ] || cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target $(TARGETS) $$(grep -qs 'build headrace_nccl:' build/release/build.ninja && echo headrace_nccl)

wheel: build ## the Python package, dist/headrace-*.whl
	@cmake --build --preset release -j $(JOBS) --target wheel

bundle: setup ## dist/headrace.yaml: the chart rendered for `kubectl apply --server-side`; ARGS go to helm template
	@scripts/bundle.sh $(ARGS)

image-context: build wheel ## what the Dockerfiles of images/ copy, in build/images
	@images/build.sh context

images: build wheel ## the container images, built without a registry
	@images/build.sh

push: ## the operator's and the loader's images to REGISTRY=registry.example.com/team, and the command that installs them
	@[ -n "$(REGISTRY)" ] || { echo "make push: to which registry? For example: make push REGISTRY=registry.example.com/team" >&2; exit 2; }
	@$(MAKE) images
	@images/build.sh push $(REGISTRY) $(ARGS)

cluster-build: setup ## the cluster's binaries, kept in the cache
	@tests/cluster/build.sh

cluster-up: cluster-build images ## a two-node Kubernetes cluster on this machine
	@tests/cluster/up.sh

cluster-down: ## end it
	@tests/cluster/down.sh

demo: setup ## the main job: from `kubectl apply` to a falling loss
	@scripts/demo.sh

test: setup ## everything: lint, unit, thread sanitizer, the Python package, conformance, the guide's examples, the chart, end to end
	@$(PYTHON) scripts/test.py

lint unit tsan python conformance docs chart e2e: setup ## one part of `make test`
	@$(PYTHON) scripts/test.py $@

gpu-deps: setup ## the sources that test-gpu needs on a machine without network, in build/gpu-deps
	@scripts/gpu_deps.sh

test-gpu: ## what needs a GPU, built alone and tested on one: a compiler, CMake, CUDA 13 and NCCL; fails without a GPU
	@scripts/test_gpu.sh

bench-gpu: ## the figures that need a GPU as one table, each beside its goal; ARGS: --steps, --rounds
	@scripts/bench_gpu.sh $(ARGS)

property: setup ## 2,000 random pipelines held to TensorFlow itself, which it downloads; not part of `make test`
	@$(PYTHON) scripts/test.py $@

bench: build wheel ## the benchmarks of tests/bench beside other loaders, which it downloads; one line a figure
	@tests/bench/run.sh

bench-operator: build ## the operator in process, and on an API server without nodes; ARGS: --inputs, --pods, ...
	@cmake --build --preset release --target operator_bench >/dev/null
	@build/release/bench/operator_bench
	@tests/bench/operator_cluster.sh $(ARGS)

fuzz: setup ## search each parser of foreign bytes for faults with libFuzzer, for hours; not part of `make test`
	@tests/fuzz/run.sh

fuzz-admission: setup ## a million hostile requests to the webhook, while an honest peer asks on; ARGS: REQUESTS MOST_MIB SEED
	@cmake --preset release >/dev/null && cmake --build --preset release --target admission_flood >/dev/null
	@build/release/tests/admission_flood $(ARGS) 2>build/release/admission_flood.log

clean: ## remove build/ and dist/ (the cache stays)
	rm -rf build dist
