package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
)

// maxRanges is the maximum number of ranges in a request: the standard library serves any number, at a cost far
// above that of the request.
const maxRanges = 8

// downloads serves the bytes of objects and exports to clients with a signed URL, and those of public buckets to
// everybody.
type downloads struct {
	engine *engine.Engine
	log    *slog.Logger
}

// ServeHTTP implements http.Handler.
func (d *downloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := &model.Call{
		Operation: model.Operation{Action: model.ActionObjectDownload},
		Actor:     model.Anybody(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: model.CleanText(r.UserAgent(), model.MaxUserAgent),
	}
	err := d.serve(w, limitRanges(r), call)
	d.engine.Core.Finish(call, err)
	switch {
	case err == nil:
	case errors.Is(err, errCutOff):
		panic(http.ErrAbortHandler) // so that no client takes a truncated response for complete
	case model.CodeOf(err) == model.CodeInternal:
		d.log.Error("download", "path", r.URL.Path, "error", err)
		http.Error(w, model.PublicMessage(err), http.StatusInternalServerError)
	default:
		http.Error(w, "There is nothing here. A download link lives a few minutes; ask for a new one.", http.StatusNotFound)
	}
}

func (d *downloads) serve(w http.ResponseWriter, r *http.Request, call *model.Call) error {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, objects.ObjectPath), "/")
	switch {
	case r.Method == http.MethodOptions && strings.HasPrefix(r.URL.Path, objects.ObjectPath):
		return d.preflight(w, call, bucket)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return model.Errorf(model.CodeNotFound, "only GET and HEAD")
	case strings.HasPrefix(r.URL.Path, recovery.ExportPath):
		call.Operation = model.Operation{Action: model.ActionExportDownload}
		return d.serveExport(w, r, call)
	}
	return d.serveObject(w, r, call, bucket, key)
}

func (d *downloads) serveObject(w http.ResponseWriter, r *http.Request, call *model.Call, bucket, key string) error {
	object, err := d.engine.Objects.ObjectDownload(call, bucket, key, r.RequestURI)
	if err != nil {
		if object.Public { // let a page see that the object does not exist
			allowOrigins(w.Header())
		}
		return err
	}
	defer object.Content.Close()
	describe(w.Header(), object)
	if err := send(w, r, object.LastModified, object.Content); err != nil {
		return d.engine.Objects.Unreadable(object.Object, err)
	}
	return nil
}

// limitRanges removes a Range header that must be ignored (RFC 9110, 14.2): with a method other than GET, a unit
// other than bytes, or signs in front of numbers. It also removes one with too many ranges, which a server may
// ignore, and one whose condition is a date (13.1.5), since the content may have changed within that second. It
// rewrites other headers so that http.ServeContent understands them.
func limitRanges(r *http.Request) *http.Request {
	unit, list, _ := strings.Cut(r.Header.Get("Range"), "=")
	ranges := strings.Split(list, ",")
	condition := r.Header.Get("If-Range")
	dated := condition != "" && !strings.Contains(condition, `"`)
	if r.Method != http.MethodGet || !strings.EqualFold(unit, "bytes") || strings.Contains(list, "+") || len(ranges) > maxRanges || dated {
		r.Header.Del("Range")
		return r
	}
	for i := range ranges {
		ranges[i] = tooMuch.ReplaceAllString(ranges[i], strconv.Itoa(math.MaxInt))
		if lastNothing.MatchString(ranges[i]) {
			ranges[i] = strconv.Itoa(math.MaxInt) + "-"
		}
	}
	r.Header.Set("Range", "bytes="+strings.Join(ranges, ","))
	return r
}

// lastNothing matches a range of the last 0 bytes. No content satisfies it (RFC 9110, 14.1.2), like a range that
// begins after the end.
var lastNothing = regexp.MustCompile(`^[ \t]*-[ \t]*0+[ \t]*$`)

// tooMuch matches a number that may overflow in ServeContent, and exceeds any size.
var tooMuch = regexp.MustCompile(`[1-9][0-9]{18,}`)

// errCutOff means that the response was cut off.
var errCutOff = errors.New("not all of it could be read: the answer was cut off")

// stored is content from package blobstore.
type stored interface {
	io.ReadSeeker
	Size() int64
	Small() []byte // nil for a file
}

// send serves content, and sends only undamaged bytes. It returns the error that kept it from sending everything:
// with errCutOff if the response had begun; otherwise nothing was sent yet.
func send(w http.ResponseWriter, r *http.Request, modified time.Time, content stored) error {
	if content.Size() == 0 {
		r.Header.Del("Range") // there are no ranges of nothing, and ServeContent would invent one
	}
	v := &verified{stored: content}
	s := &sender{ResponseWriter: w, content: v, version: r.ProtoMajor}
	http.ServeContent(s, r, "", modified, v)
	err := v.end()
	switch {
	case err == nil:
		s.begin()
		return nil
	case s.status != 0:
		for _, name := range []string{"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Range", "ETag", "Last-Modified"} {
			w.Header().Del(name)
		}
		return err
	}
	return fmt.Errorf("%w: %w", errCutOff, err)
}

// verified records that content is damaged. It can be ended: http.ServeContent reads several ranges in a goroutine
// that continues after it has returned if the client has gone, and content may be closed by then.
type verified struct {
	stored

	mu    sync.Mutex // held during reads of content
	ended bool
	err   error
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return 0, os.ErrClosed
	}
	n, err := v.stored.Read(p)
	if err != nil && err != io.EOF {
		v.err = err
	}
	return n, err
}

// Seek implements io.Seeker.
func (v *verified) Seek(offset int64, whence int) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return 0, os.ErrClosed
	}
	return v.stored.Seek(offset, whence)
}

// end waits for a Read in progress and prevents others. It returns the error that kept content from being read, if
// any.
func (v *verified) end() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	return v.err
}

// sender sends small objects directly from the buffer they were read into.
type sender struct {
	http.ResponseWriter
	content *verified
	version int // of HTTP
	status  int // of the response until it begins, then 0
}

// WriteHeader implements http.ResponseWriter. It delays the status until the first bytes, which may turn out to be
// damaged.
func (s *sender) WriteHeader(status int) { s.status = status }

// begin starts the response.
func (s *sender) begin() {
	if s.status != 0 {
		s.ResponseWriter.WriteHeader(s.status)
		s.status = 0
	}
}

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	s.begin()
	return s.ResponseWriter.Write(p)
}

// Unwrap implements the interface that http.ResponseController uses.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// ReadFrom implements io.ReaderFrom, which http.ServeContent's copy uses. Without a copy, an object of 60 KiB takes
// a quarter less CPU time. HTTP/2 needs the copy: after a stream is reset, the server may still read the buffer
// given to Write.
func (s *sender) ReadFrom(src io.Reader) (int64, error) {
	limited, ok := src.(*io.LimitedReader)
	small := s.content.Small()
	if !ok || limited.R != io.Reader(s.content) || s.version > 1 || small == nil {
		return io.Copy(struct{ io.Writer }{s}, src)
	}
	offset, err := s.content.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	n, err := s.Write(small[offset : offset+limited.N])
	return int64(n), err
}
