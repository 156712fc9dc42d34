package password

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

//go:embed common.txt.gz
var commonList []byte

// longest is the maximum length of a common password, in characters.
const longest = 20

// common returns the commonly used passwords with their rank, starting at 1. It is read on
// first use: most command-line processes never need it.
var common = sync.OnceValue(func() map[string]int {
	ranks := map[string]int{}
	for word := range strings.Lines(unpacked()) {
		ranks[strings.TrimSuffix(word, "\n")] = len(ranks) + 1
	}
	return ranks
})

func unpacked() string {
	list, err := gzip.NewReader(bytes.NewReader(commonList))
	if err != nil { // it is part of the binary
		panic(err)
	}
	text, err := io.ReadAll(list)
	if err != nil {
		panic(err)
	}
	return string(text)
}
