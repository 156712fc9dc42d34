package offsite

import (
	"context"
	"errors"

	"holdfast/engine/offsite/stream"
)

// part is a kind of data that is copied. Its constructor takes what it reads from. One
// part serves one writer after the other: start and stop alternate.
type part interface {
	// start adds the part's sources to the writer, and watches for what changes until
	// stop. known has what the store has already.
	//
	// A source begins where known says that the log ends, if the machine still has the
	// bytes that follow, and otherwise at what is durable now. The service makes a
	// checkpoint at once, which has the rest.
	start(w *stream.Writer, known *known) error
	// entries returns the part's whole state, for a checkpoint. It stores the files that the
	// store lacks, several at a time, and refers to those that are known. The state
	// may be of any moment of the call.
	entries(ctx context.Context) ([]stream.Entry, error)
	// stop ends what start began, and waits for it. The writer's sources may still be
	// read after it: they have nothing more.
	stop()
}

// restorer brings a part back into an empty data directory: first the entries of
// a checkpoint, then the frames of the log, then finish. All calls are idempotent, as a
// recovery that was killed repeats them from the first on. Each restorer gets what is of
// its kinds and its types of frames only.
type restorer interface {
	entry(ctx context.Context, e stream.Entry) error
	// frame applies a frame. It returns errGap when the frame does not continue what
	// the restorer has, as a holeError if that is the WAL of one database.
	frame(ctx context.Context, f stream.Frame) error
	// finish returns when everything of the first phase is durable on disk. What remains to
	// be fetched later is on disk as a list.
	finish(ctx context.Context) error
}

// errGap means that the log lacks what came before a frame: the machine was killed
// before it could store it, and the next checkpoint, which has it, is not there yet. A
// recovery ends before that frame or, where the gap is in a database's WAL, that database.
var errGap = errors.New("the log lacks what came before")
