package objectstore

import (
	"fmt"
	"strings"
)

const (
	maxKey     = 512
	maxSegment = 200 // file systems allow 255
)

// checkKey refuses what is no key.
func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("the key has %d bytes, more than %d", len(key), maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch {
		case segment == "" || segment[0] == '.':
			return fmt.Errorf("the key %q has an empty segment or one that begins with a dot", key)
		case len(segment) > maxSegment:
			return fmt.Errorf("the key %q has a segment of more than %d bytes", key, maxSegment)
		case strings.ContainsFunc(segment, notInKey):
			return fmt.Errorf("the key %q has characters other than letters, digits and \"._=-\"", key)
		}
	}
	return nil
}

// checkPrefix refuses what no key begins with.
func checkPrefix(prefix string) error {
	whole, partial := strings.CutSuffix(prefix, "/")
	if prefix == "" || (!partial && checkKey(prefix) == nil) {
		return nil
	}
	return checkKey(whole)
}

func notInKey(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._=-", r)
}
