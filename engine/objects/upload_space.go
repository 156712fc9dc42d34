package objects

import (
	"io"
	"sync/atomic"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Uploads leave a share of the disk: deletes, the metadata and the audit log
// need room too, and with none nobody could make any.
const (
	// reserveShare of the disk is left, within leastReserve and mostReserve, in
	// bytes.
	reserveShare = 0.05
	leastReserve = 32 << 20
	mostReserve  = 1 << 30
	// spaceKnown is for how long it is not looked again how much is free.
	spaceKnown = 10 * time.Millisecond
	// endlessMargin is how much is left besides, in bytes, by uploads that have sent
	// as much and not said how much is to come: others are not refused for them.
	endlessMargin = 16 << 20
)

// uploadSpace knows how much of the disk uploads may take.
type uploadSpace struct {
	dirs    []string
	measure func(dir string) (total, free int64, err error)
	last    atomic.Pointer[measuredSpace]
}

type measuredSpace struct {
	at   time.Time
	left int64
}

func newUploadSpace(dirs ...string) *uploadSpace {
	return &uploadSpace{dirs: dirs, measure: core.MeasureDisk}
}

// left returns how many bytes uploads may take. A file system that does not
// say how large it is lets them have what they like.
func (r *uploadSpace) left() int64 {
	now := time.Now()
	if m := r.last.Load(); m != nil && now.Sub(m.at) < spaceKnown {
		return m.left
	}
	left := int64(1<<63 - 1)
	for _, dir := range r.dirs {
		if total, free, err := r.measure(dir); err == nil && total > 0 {
			left = min(left, free-uploadReserve(total))
		}
	}
	r.last.Store(&measuredSpace{now, left})
	return left
}

// uploadReserve is what uploads leave of a disk.
func uploadReserve(total int64) int64 {
	return min(mostReserve, max(leastReserve, int64(float64(total)*reserveShare)))
}

var errNoneLeft = model.Errorf(model.CodeForbidden, "%s; delete what is not needed, or have the operator make room", core.DiskFull)

// refuse refuses size bytes for which there is no room but the reserve.
func (r *uploadSpace) refuse(size int64) error {
	left := r.left()
	switch {
	case size < left:
		return nil
	case left <= 0:
		return errNoneLeft
	}
	return model.Errorf(model.CodeForbidden,
		"%s: the upload needs %d MB more than may be taken; delete what is not needed, or have the operator make room", core.DiskFull, (size-left)>>20+1)
}

// leaving returns body, which fails once it would go into the reserve. An endless
// one does not say how much is to come.
func (r *uploadSpace) leaving(body io.Reader, endless bool) io.Reader {
	return &boundedBody{Reader: body, space: r, endless: endless}
}

type boundedBody struct {
	io.Reader
	space   *uploadSpace
	endless bool
	read    int64 // bytes
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.space.refuse(0); err != nil {
		return 0, err
	}
	if b.endless && b.read >= endlessMargin && b.space.left() <= endlessMargin {
		return 0, errNoneLeft
	}
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}
