package backup

import (
	"errors"
	"io"
)

// feed lets a function that reads check a stream that is being written. The
// function runs in the feed's goroutine until finish or cancel.
type feed struct {
	pipe *io.PipeWriter
	done chan struct{}
	err  error // the function's; read after done
}

var errAfterEnd = errors.New("data after the end")

func startFeed(read func(io.Reader) error) *feed {
	r, w := io.Pipe()
	f := &feed{pipe: w, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = read(r)
		reason := f.err
		if reason == nil {
			reason = errAfterEnd
		}
		r.CloseWithError(reason) // what Write answers from now on
	}()
	return f
}

// Write implements io.Writer. It answers the function's error once that has
// ended.
func (f *feed) Write(p []byte) (int, error) { return f.pipe.Write(p) }

// finish says that the stream is complete, and returns the function's verdict.
func (f *feed) finish() error {
	f.pipe.Close()
	<-f.done
	return f.err
}

// cancel ends the function, which reads errCancelled. After finish it does
// nothing.
func (f *feed) cancel() {
	f.pipe.CloseWithError(errCancelled)
	<-f.done
}

var errCancelled = errors.New("stream was given up")
