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

// longest is how many characters a common password has at most.
const longest = 20

// common returns the commonly used passwords with their rank, from 1. It is
// read at the first use: most processes of the command line never need it.
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
