package content

import (
	"errors"
	"io"
	"time"
)

const (
	// MaxFormFields is the maximum size in bytes of a form up to the bytes of its file, with the headers of its parts.
	// mime/multipart would keep 10 MiB of each header in memory, and far more of it once parsed.
	MaxFormFields = 32 << 10
	// FormTimeout is the maximum time until the bytes of a form's file begin.
	FormTimeout = 30 * time.Second
	// maxFormEnd is the maximum size in bytes of what is read after the file: the end of the form, or the header of
	// another part.
	maxFormEnd = 4 << 10
)

// ErrFormTooLarge means that a form has too many bytes before or after its file.
var ErrFormTooLarge = errors.New("the form has too many bytes beside its file")

// FormBody is the body of a form with one file. Its reads fail with ErrFormTooLarge after MaxFormFields, until the file
// has begun.
type FormBody struct {
	source io.Reader
	inFile bool
	left   int // how many bytes may still be read outside the file
}

// NewFormBody returns the body whose fields are read from source.
func NewFormBody(source io.Reader) *FormBody { return &FormBody{source: source, left: MaxFormFields} }

// BeginFile lifts the bound. The rest of the body is read from source.
func (b *FormBody) BeginFile(source io.Reader) { b.source, b.inFile = source, true }

// EndFile bounds what follows the file.
func (b *FormBody) EndFile() { b.inFile, b.left = false, maxFormEnd }

// Read implements io.Reader.
func (b *FormBody) Read(p []byte) (int, error) {
	if b.inFile {
		return b.source.Read(p)
	}
	if b.left == 0 {
		return 0, ErrFormTooLarge
	}
	n, err := b.source.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
