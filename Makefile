# `go run . serve` and `go test -timeout 30m ./...` need nothing of this: these are shorthands.

.PHONY: build test test-all race check bench bench-instant bench-offsite bench-all fuzz chaos soak suites bundle test-bundle dist release

build: ## the binary, ./holdfast
	go build -trimpath -o holdfast .

test:
	go test -timeout 30m ./...

test-all: ## what make check leaves out, too: every version of PostgreSQL, a kill of each process at each moment, more kills
	HOLDFAST_LONG=all go test -timeout 90m ./...

race: ## all of it with the race detector, but what measures memory, of which that takes several times as much
	go test -race -timeout 60m -skip '^Test(Floods|FloodsOfOtherMessages|HugeRow)$$' ./...

check: ## what must pass before a change lands
	.ci/run

SCALE ?= 100

bench: ## one table of ratios to the peers that are installed, kept in testdata/bench; 25 GB of disk, 40 minutes
	testdata/bench/run $(SCALE)

bench-instant: ## the ways to an empty database, to a branch, and out of sleep, in milliseconds with ranges; alone on the machine, 12 minutes
	go test ./cli -run '^$$' -bench '^BenchmarkInstant(Branch|Sleep)?$$' -benchtime 1x -count 1 -v

bench-offsite: ## the copy off-site: uploads beside the bare client, commits and memory with and without it, ten kills, recovery beside a local restore, 100,000 objects, pgBackRest
	go test -v -run '^$$' -bench '^Benchmark(OffsiteCommits|OffsiteLoss|OffsiteRecovery|OffsiteObjects|OffsitePeer|Throughput)$$' -benchtime 1x -timeout 60m ./cli ./internal/objectstore

bench-all: ## every benchmark
	go test -run '^$$' -bench . -benchtime 2s -timeout 60m ./...

FUZZTIME ?= 60s

fuzz: ## every fuzz test for a minute
	@for target in $$(grep -rl '^func Fuzz' --include '*_test.go' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$target/*_test.go | cut -c6-); do \
			go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$target || exit 1; \
		done; \
	done

CHAOSTIME ?= 10m
SEED ?= $(shell date +%s)

chaos: ## everything at random, killed at random, compared with a model
	HOLDFAST_LONG=1 go test ./cli -run '^TestChaos$$' -count 1 -v -timeout 0 -chaos.for $(CHAOSTIME) -chaos.seed $(SEED) $(if $(KEEP),-chaos.keep $(KEEP))

SOAKTIME ?= 15m

soak: ## 50 databases and 200 clients, some of them hostile, for long; figures at the end
	HOLDFAST_LONG=1 go test ./cli -run '^TestSoak$$' -count 1 -v -timeout 0 -soak.for $(SOAKTIME) -soak.databases 50 -soak.clients 200 -soak.think 4s

suites: ## the test suites of other projects against the built binary; SUITES= names some of them
	testdata/suites/run $(SUITES)

bundle: ## ./holdfast with the PostgreSQL of this machine inside
	go run ./engine/postgres/binaries/internal/packbundle engine/postgres/binaries/bundle.tar.zst
	CGO_ENABLED=0 go build -trimpath -tags bundled -ldflags '-s -w' -o holdfast .

test-bundle: bundle ## what bundle made, where there is neither PostgreSQL nor a network; as root
	HOLDFAST_BUNDLED=$(CURDIR)/holdfast go test -count=1 -v -run TestBundled ./cli

dist: ## dist/: archive, packages, bill of materials and checksums for this machine's platform
	rm -rf dist
	deploy/release dist

release: ## the same for every platform, from a commit with a version tag
	@.ci/release-version
	rm -rf dist
	deploy/release dist linux/amd64 linux/arm64 darwin/arm64 darwin/amd64
	@tag=$$(.ci/release-version) && [ -e "dist/holdfast_$${tag#v}_linux_amd64.tar.gz" ] || \
		{ echo "release: the files are not of version $$tag: $$(ls dist)" >&2; exit 1; }
