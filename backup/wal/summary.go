package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// summary describes the records that end in a segment: it gives times and changed pages without reading the WAL
// again. It can always be rebuilt from the WAL.
type summary struct {
	key       segmentKey
	format    uint32   // of its file
	first     xlog.LSN // start of the first record that starts in the segment; 0 = none
	last      xlog.LSN // start of the last record that ends in it; 0 = none
	end       xlog.LSN // end of the last record
	commits   uint64   // records whose outcome shows
	minTime   int64    // of commits, as PostgreSQL's TimestampTz
	maxTime   int64
	firstTime int64
	lastTime  int64
	changes   *xlog.Changes // nil if not read
}

// add adds a record that ends in the segment.
func (s *summary) add(r *xlog.Record, segmentStart xlog.LSN) {
	if s.first == 0 && r.Start >= segmentStart {
		s.first = r.Start
	}
	s.last, s.end = r.Start, r.End
	s.changes.Add(r)
	if outcome, at := r.Outcome(); outcome.Shows() {
		s.addCommit(xlog.ToTimestamp(at))
	}
}

func (s *summary) addCommit(t int64) {
	if s.commits == 0 {
		s.minTime, s.maxTime, s.firstTime = t, t, t
	}
	s.minTime, s.maxTime, s.lastTime = min(s.minTime, t), max(s.maxTime, t), t
	s.commits++
}

func (s *summary) lastCommit() time.Time {
	if s.commits == 0 {
		return time.Time{}
	}
	return xlog.FromTimestamp(s.lastTime)
}

const (
	summaryMagic = "holdfsum"
	// 1 left out prepared transactions, and 2 the record that continues into the segment of a fork.
	summaryFormat = 3
	usableSummary = 2 // of other segments
	summaryHeader = 104
)

func (s *summary) publish(fsys durable.FS, path string, c *codec) error {
	body := c.enc.EncodeAll(s.changes.Encode(), nil)
	h := make([]byte, 0, summaryHeader)
	h = append(h, summaryMagic...)
	h = binary.LittleEndian.AppendUint32(h, summaryFormat)
	h = binary.LittleEndian.AppendUint32(h, s.key.timeline)
	for _, v := range []uint64{
		s.key.n, uint64(s.first), uint64(s.last), uint64(s.end), s.commits,
		uint64(s.minTime), uint64(s.maxTime), uint64(s.firstTime), uint64(s.lastTime),
	} {
		h = binary.LittleEndian.AppendUint64(h, v)
	}
	h = binary.LittleEndian.AppendUint32(h, uint32(len(body)))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(body, castagnoli))
	h = append(h, 0, 0, 0, 0)
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	return durable.Publish(fsys, path, 0o600, durable.Bytes(h, body))
}

// readSummary reads a summary, with changes if requested. It returns an error unless the file is a complete summary
// of that segment.
func readSummary(path string, key segmentKey, c *codec, changes bool) (*summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	defer f.Close()
	h := make([]byte, summaryHeader)
	if _, err := f.ReadAt(h, 0); err != nil || string(h[:8]) != summaryMagic ||
		crc32.Checksum(h[:summaryHeader-4], castagnoli) != binary.LittleEndian.Uint32(h[summaryHeader-4:]) ||
		binary.LittleEndian.Uint32(h[8:]) < usableSummary || binary.LittleEndian.Uint32(h[8:]) > summaryFormat {
		return nil, fmt.Errorf("%s is not a summary: %w", filepath.Base(path), errDamaged)
	}
	s := decodeSummary(h)
	if s.key != key {
		return nil, fmt.Errorf("%s belongs to another segment: %w", filepath.Base(path), errDamaged)
	}
	if !changes {
		return s, nil
	}
	body := make([]byte, binary.LittleEndian.Uint32(h[88:]))
	if _, err := f.ReadAt(body, summaryHeader); err != nil || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(h[92:]) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), errDamaged)
	}
	body, err = c.dec.DecodeAll(body, nil)
	if err == nil {
		s.changes, err = xlog.DecodeChanges(body)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", filepath.Base(path), errDamaged, err)
	}
	return s, err
}

func decodeSummary(h []byte) *summary {
	v := func(n int) uint64 { return binary.LittleEndian.Uint64(h[16+8*n:]) }
	return &summary{
		format: binary.LittleEndian.Uint32(h[8:]), key: segmentKey{binary.LittleEndian.Uint32(h[12:]), v(0)},
		first: xlog.LSN(v(1)), last: xlog.LSN(v(2)), end: xlog.LSN(v(3)), commits: v(4),
		minTime: int64(v(5)), maxTime: int64(v(6)), firstTime: int64(v(7)), lastTime: int64(v(8)),
	}
}
