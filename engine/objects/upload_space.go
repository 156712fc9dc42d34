package objects

import (
	"io"
	"sync/atomic"
	"time"

	"holdfast/engine/core"
)

// Uploads leave a share of the disk free: deletions, the metadata and the audit log need space too, and on a full disk
// nothing could be deleted.
const (
	// reserveShare is the share of the disk left free, within leastReserve and
	// mostReserve bytes.
	reserveShare = 0.05
	leastReserve = 32 << 20
	mostReserve  = 1 << 30
	// spaceKnown is how long a measurement is valid.
	spaceKnown = 10 * time.Millisecond
	// unknownLengthMargin is the extra number of bytes that an upload of unknown length leaves free once it has sent as many,
	// so that it does not block others.
	unknownLengthMargin = 16 << 20
)

// uploadSpace measures how much of the disk uploads may use.
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

// left returns the number of bytes uploads may use. A file system that does not
// report its size imposes no limit.
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

// uploadReserve returns the number of bytes that uploads leave free on a disk.
func uploadReserve(total int64) int64 {
	return min(mostReserve, max(leastReserve, int64(float64(total)*reserveShare)))
}

var errNoSpaceLeft = core.NoSpace(nil, "%s; delete what is not needed, or have the operator free disk space", core.DiskFull)

// refuse refuses size bytes that would use the reserve.
func (r *uploadSpace) refuse(size int64) error {
	left := r.left()
	switch {
	case size < left:
		return nil
	case left <= 0:
		return errNoSpaceLeft
	}
	return core.NoSpace(nil,
		"%s: the upload needs %d MB more than may be taken; delete what is not needed, or have the operator free disk space", core.DiskFull, (size-left)>>20+1)
}

// withinReserve returns a reader of body that fails once the reserve would be used. An endless body has no known length.
func (r *uploadSpace) withinReserve(body io.Reader, endless bool) io.Reader {
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
	if b.endless && b.read >= unknownLengthMargin && b.space.left() <= unknownLengthMargin {
		return 0, errNoSpaceLeft
	}
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}
