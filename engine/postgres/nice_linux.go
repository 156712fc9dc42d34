package postgres

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// atNice runs do at the given niceness (0 = that of this process) and returns its
// error. Only an administrator could raise a thread's priority again, so the thread
// ends with do.
func atNice(nice int, do func() error) error {
	if nice == 0 {
		return do()
	}
	var thread sync.WaitGroup
	var err error
	thread.Go(func() {
		runtime.LockOSThread() // without an unlock: the runtime ends the thread with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice)
		err = do()
	})
	thread.Wait()
	return err
}
