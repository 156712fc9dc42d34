package wal

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// alarm tells, once, that a file in a directory has been written to. While it
// is not set, writers pay nothing for it.
type alarm struct {
	dir     string
	written chan struct{}
	ready   bool // the watches' mutex guards it
}

func newAlarm(dir string) *alarm { return &alarm{dir: dir, written: make(chan struct{}, 1)} }

// set sets the alarm. fresh says that it was not set before.
func (a *alarm) set() (fresh bool, err error) {
	w, err := processWatches()
	if err != nil {
		return false, err
	}
	return w.set(a)
}

func (a *alarm) close() {
	if w, err := processWatches(); err == nil {
		w.remove(a)
	}
}

// processWatches are the alarms of this process: the kernel gives a user few
// instances of inotify.
var processWatches = sync.OnceValues(newWatches)

type watches struct {
	fd   int
	file *os.File

	mu     sync.Mutex
	alarms map[int32]*alarm // by watch descriptor
}

func newWatches() (*watches, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch WAL: %w", err)
	}
	w := &watches{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), alarms: map[int32]*alarm{}}
	go w.run()
	return w, nil
}

func (w *watches) set(a *alarm) (fresh bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.ready {
		return false, nil
	}
	watch, err := unix.InotifyAddWatch(w.fd, a.dir, unix.IN_MODIFY|unix.IN_ONESHOT)
	if err != nil {
		return false, fmt.Errorf("watch WAL: %w", err)
	}
	a.ready, w.alarms[int32(watch)] = true, a
	return true, nil
}

func (w *watches) remove(a *alarm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for watch, other := range w.alarms {
		if other == a {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(watch)) // it may be gone
			delete(w.alarms, watch)
		}
	}
	a.ready = false
}

// run tells of what happens, for as long as the process lives.
func (w *watches) run() {
	buf := make([]byte, 4096)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			watch, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			w.tell(watch, mask)
			rest = rest[unix.SizeofInotifyEvent+binary.NativeEndian.Uint32(rest[12:]):]
		}
	}
}

// tell ends a watch: the kernel has done so, after what has happened first.
// That it says so with another event has been told then, unless the watch was
// set again just in between.
func (w *watches) tell(watch int32, mask uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, a := range w.alarms {
		if id != watch && mask&unix.IN_Q_OVERFLOW == 0 {
			continue
		}
		delete(w.alarms, id)
		a.ready = false
		select {
		case a.written <- struct{}{}:
		default:
		}
	}
}
