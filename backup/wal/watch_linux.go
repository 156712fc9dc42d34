package wal

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// dirWatch reports the next write to a file in a directory, once. While it is not armed, it costs writers nothing.
type dirWatch struct {
	dir     string
	written chan struct{}
	armed   bool // guarded by the watcher's mutex
}

func newDirWatch(dir string) *dirWatch { return &dirWatch{dir: dir, written: make(chan struct{}, 1)} }

// arm arms the watch. It returns false if the watch was already armed.
func (w *dirWatch) arm() (newly bool, err error) {
	i, err := processWatcher()
	if err != nil {
		return false, err
	}
	return i.arm(w)
}

func (w *dirWatch) close() {
	if i, err := processWatcher(); err == nil {
		i.remove(w)
	}
}

// processWatcher is shared by the process: the kernel limits the number of inotify instances per user.
var processWatcher = sync.OnceValues(newWatcher)

// watcher is an inotify instance.
type watcher struct {
	fd   int
	file *os.File

	mu    sync.Mutex
	armed map[int32]*dirWatch // by watch descriptor
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch WAL: %w", err)
	}
	i := &watcher{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), armed: map[int32]*dirWatch{}}
	go i.run()
	return i, nil
}

func (i *watcher) arm(w *dirWatch) (newly bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if w.armed {
		return false, nil
	}
	descriptor, err := unix.InotifyAddWatch(i.fd, w.dir, unix.IN_MODIFY|unix.IN_ONESHOT)
	if err != nil {
		return false, fmt.Errorf("watch WAL: %w", err)
	}
	w.armed, i.armed[int32(descriptor)] = true, w
	return true, nil
}

func (i *watcher) remove(w *dirWatch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for descriptor, other := range i.armed {
		if other == w {
			_, _ = unix.InotifyRmWatch(i.fd, uint32(descriptor)) // the kernel may have removed it
			delete(i.armed, descriptor)
		}
	}
	w.armed = false
}

// run delivers events for the lifetime of the process.
func (i *watcher) run() {
	buf := make([]byte, 4096)
	for {
		n, err := i.file.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			descriptor, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			i.fire(descriptor, mask)
			rest = rest[unix.SizeofInotifyEvent+binary.NativeEndian.Uint32(rest[12:]):]
		}
	}
}

// fire disarms a watch and reports the write. The kernel removes the one-shot watch with its first event. The
// IN_IGNORED event that follows finds it disarmed, unless it was rearmed in between; then it reports a spurious
// write, which is harmless. If the queue overflowed, all watches fire.
func (i *watcher) fire(descriptor int32, mask uint32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, w := range i.armed {
		if id != descriptor && mask&unix.IN_Q_OVERFLOW == 0 {
			continue
		}
		delete(i.armed, id)
		w.armed = false
		select {
		case w.written <- struct{}{}:
		default:
		}
	}
}
