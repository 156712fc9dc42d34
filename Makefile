# `go run . serve` and `go test ./...` need nothing of this: these are shorthands.

.PHONY: build test race check bench fuzz bundle

build: ## the binary, ./holdfast
	go build -trimpath -o holdfast .

test:
	go test ./...

race: ## all of it with the race detector
	go test -race -timeout 60m ./...

check: ## what must pass before a change lands
	.ci/run

bench: ## figures, as ratios against what runs beside them
	go test -run '^$$' -bench . -benchtime 2s -timeout 60m ./...

FUZZTIME ?= 60s

fuzz: ## every fuzz test for a minute
	@for target in $$(grep -rl '^func Fuzz' --include '*_test.go' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$target/*_test.go | cut -c6-); do \
			go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$target || exit 1; \
		done; \
	done

bundle: ## ./holdfast with the PostgreSQL of this machine inside
	go run ./engine/postgres/internal/packbundle
	go build -trimpath -tags bundled -o holdfast .
