# `go run . serve` and `go test -timeout 30m ./...` need nothing of this: these are shorthands.

.PHONY: build test race check bench bench-instant bench-offsite bench-all fuzz chaos soak bundle test-bundle dist deb release

build: ## the binary, ./holdfast
	go build -trimpath -o holdfast .

test:
	go test -timeout 30m ./...

race: ## all of it with the race detector, but what measures memory, of which that takes several times as much
	go test -race -timeout 60m -skip '^Test(Floods|FloodsOfOtherMessages|HugeRow)$$' ./...

check: ## what must pass before a change lands
	.ci/run

SCALE ?= 100

bench: ## one table of ratios to the peers that are installed, kept in testdata/bench; 25 GB of disk, 25 minutes
	testdata/bench/run $(SCALE)

bench-instant: ## the ways to an empty database, in milliseconds with ranges; alone on the machine, 2 minutes
	go test ./cli -run '^$$' -bench '^BenchmarkInstant$$' -benchtime 1x -count 1 -v

bench-offsite: ## the copy off-site: uploads beside the bare client, commits and memory with and without it, ten kills
	go test -v -run '^$$' -bench '^Benchmark(OffsiteCommits|OffsiteLoss|Throughput)$$' -benchtime 1x -timeout 60m ./cli ./internal/objectstore

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
	HOLDFAST_LONG=1 go test ./cli -run '^TestChaos$$' -count 1 -v -timeout 0 -chaos.for $(CHAOSTIME) -chaos.seed $(SEED)

SOAKTIME ?= 15m

soak: ## 50 databases and 200 clients, some of them hostile, for long; figures at the end
	HOLDFAST_LONG=1 go test ./cli -run '^TestSoak$$' -count 1 -v -timeout 0 -soak.for $(SOAKTIME) -soak.databases 50 -soak.clients 200 -soak.think 4s

bundle: ## ./holdfast with the PostgreSQL of this machine inside
	go run ./engine/postgres/binaries/internal/packbundle engine/postgres/binaries/bundle.tar.zst
	CGO_ENABLED=0 go build -trimpath -tags bundled -ldflags '-s -w' -o holdfast .

test-bundle: bundle ## what bundle made, where there is neither PostgreSQL nor a network; as root
	HOLDFAST_BUNDLED=$(CURDIR)/holdfast go test -count=1 -v -run TestBundled ./cli

dist: ## dist/: a static binary, manual pages, completions
	CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags '-s -w' -o dist/holdfast .
	go run ./cli/internal/manual dist

# Go derives the version of the binary from the tags of its checkout, but not
# in a linked worktree.
BUILT = go version -m dist/holdfast | awk '$$1 == "mod" { print $$3 == "(devel)" ? "v0.0.0" : $$3 }'

deb: dist ## dist/holdfast_*.deb
	rm -f dist/*.deb
	gzip -9nf dist/man/*.1
	version=$$($(BUILT)) && GOARCH=$$(go env GOARCH) VERSION=$${version#v} \
		go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4 package -f deploy/nfpm.yaml -p deb -t dist/

release: ## dist/ and the package, from a commit with a version tag
	@.ci/release-version
	rm -rf dist
	$(MAKE) deb
	@tag=$$(.ci/release-version) && built=$$($(BUILT)) && [ "$$tag" = "$$built" ] || \
		{ echo "release: the binary is of version $$built, not $$tag" >&2; exit 1; }
