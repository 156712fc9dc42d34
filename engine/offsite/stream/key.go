package stream

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	formatVersion = 1
	markerKey     = "holdfast"
	keysPrefix    = "keys/"
	epochsPrefix  = "epoch/"
	bidsPrefix    = "bid/"
	dataPrefix    = "e/"
)

// Epoch identifies one Writer's part of the store. Nonce is empty where the store
// refuses the second creator of a key.
type Epoch struct {
	Number uint32
	Nonce  string
}

// String returns the epoch as it stands in keys.
func (e Epoch) String() string {
	if e.Nonce == "" {
		return fmt.Sprintf("%08x", e.Number)
	}
	return fmt.Sprintf("%08x-%s", e.Number, e.Nonce)
}

// supersedes reports whether the claim of e ends the right of o to write.
func (e Epoch) supersedes(o Epoch) bool {
	return e.Number > o.Number || e.Number == o.Number && e.String() < o.String()
}

func (e Epoch) key() string { return epochsPrefix + e.String() }

func (e Epoch) dir() string { return dataPrefix + e.String() + "/" }

func (e Epoch) logKey(seq uint64) string { return fmt.Sprintf("%slog/%016x", e.dir(), seq) }

func (e Epoch) pointsPrefix() string { return e.dir() + "point/" }

func (e Epoch) filesPrefix() string { return e.dir() + "file/" }

func (e Epoch) partKey(id uint64, part int64) string {
	return fmt.Sprintf("%s%016x/%06x", e.filesPrefix(), id, part)
}

var (
	epochPattern = regexp.MustCompile(`^([0-9a-f]{8})(?:-([0-9a-z]{1,32}))?$`)
	pointPattern = regexp.MustCompile(`^([0-9a-f]{16})-([0-9a-f]{16})$`)
)

// parseEpoch parses what String returns.
func parseEpoch(s string) (Epoch, bool) {
	m := epochPattern.FindStringSubmatch(s)
	if m == nil {
		return Epoch{}, false
	}
	n, err := strconv.ParseUint(m[1], 16, 32)
	return Epoch{uint32(n), m[2]}, err == nil
}

// Point names a checkpoint. The log through Through must be replayed before the state
// is consistent, and then it is that of Time. Points of an epoch are ordered by
// either.
type Point struct {
	Epoch   Epoch
	Through uint64
	Time    time.Time
}

func (p Point) key() string {
	return fmt.Sprintf("%s%016x-%016x", p.Epoch.pointsPrefix(), p.Through, uint64(nanos(p.Time)))
}

// parsePoint parses the key of a point of an epoch.
func parsePoint(e Epoch, key string) (Point, bool) {
	name, ok := strings.CutPrefix(key, e.pointsPrefix())
	m := pointPattern.FindStringSubmatch(name)
	if !ok || m == nil {
		return Point{}, false
	}
	through, err1 := strconv.ParseUint(m[1], 16, 64)
	ns, err2 := strconv.ParseUint(m[2], 16, 63)
	return Point{e, through, fromNanos(int64(ns))}, err1 == nil && err2 == nil
}

// parseLogKey returns the number in the key of a log object.
func parseLogKey(e Epoch, key string) (uint64, bool) {
	hex, ok := strings.CutPrefix(key, e.dir()+"log/")
	n, err := strconv.ParseUint(hex, 16, 64)
	return n, ok && err == nil && e.logKey(n) == key
}

// pointOf returns the point that a key is that of, false if it is another's.
func pointOf(key string) (Point, bool) {
	rest, _ := strings.CutPrefix(key, dataPrefix)
	name, _, _ := strings.Cut(rest, "/")
	e, ok := parseEpoch(name)
	if !ok {
		return Point{}, false
	}
	return parsePoint(e, key)
}

// parsePartKey returns the file and the number in the key of a part.
func parsePartKey(e Epoch, key string) (id uint64, part int64, ok bool) {
	name, ok := strings.CutPrefix(key, e.filesPrefix())
	if !ok {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(name, "%016x/%06x", &id, &part)
	return id, part, err == nil && e.partKey(id, part) == key
}

// fileOf returns the file that a key is a part of, false if it is another's.
func fileOf(key string) (fileID, bool) {
	rest, _ := strings.CutPrefix(key, dataPrefix)
	name, _, _ := strings.Cut(rest, "/")
	e, ok := parseEpoch(name)
	if !ok {
		return fileID{}, false
	}
	id, _, ok := parsePartKey(e, key)
	return fileID{e, id}, ok
}
