package s3

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/content"
)

func (q *request) getObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	if err := q.checkPartNumber(); err != nil {
		return err
	}
	version, err := q.version()
	if err != nil {
		return err
	}
	object, err := q.engine.Objects.ObjectOpen(q.Request.Context(), q.Call, b.ID, q.key, version)
	if err != nil {
		return q.versionError(b, err)
	}
	defer object.Content.Close()
	q.describeVersion(b, object.Object)
	err = q.send(object.Object, object.Content)
	if errors.Is(err, errStored) {
		return q.engine.Objects.Unreadable(object.Object, err)
	}
	return err
}

func (q *request) headObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	if err := q.checkPartNumber(); err != nil {
		return err
	}
	version, err := q.version()
	if err != nil {
		return err
	}
	object, err := q.engine.Objects.VersionGet(q.Call, b.ID, q.key, version)
	if err != nil {
		return q.versionError(b, err)
	}
	q.describeVersion(b, object.Object)
	return q.send(object.Object, content.OfSize(object.SizeBytes))
}

// errStored means that stored bytes could not be read.
var errStored = errors.New("stored bytes could not be read")

// send serves an object with its headers, the request's conditions and range.
func (q *request) send(o model.Object, stored content.Stored) error {
	if q.query.Get("partNumber") != "" {
		if err := q.selectPart(o); err != nil {
			return err
		}
	}
	r := q.Request
	if q.page >= http.StatusBadRequest { // all of what explains an error
		for _, name := range []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"} {
			r.Header.Del(name)
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if tag := r.Header.Get(name); tag != "" && tag != "*" && !strings.Contains(tag, `"`) {
			r.Header.Set(name, quoted(tag)) // clients leave the quotes out
		}
	}
	if wanted := r.Header.Get("Range"); !isOneRange(wanted) {
		r.Header.Del("Range") // as in S3, which has no answers of several parts
	} else if suffix := strings.HasPrefix(wanted, "bytes=-"); stored.Size() == 0 && !suffix || suffix && strings.Trim(wanted[len("bytes=-"):], "0") == "" {
		return invalidRange(wanted, stored.Size())
	} else if stored.Size() == 0 {
		r.Header.Del("Range")
	}
	if r.Method == http.MethodGet {
		r = content.LimitRanges(r)
	}
	whole := r.Header.Get("Range") == ""
	describe(q.Header(), o, whole && strings.EqualFold(r.Header.Get("X-Amz-Checksum-Mode"), "ENABLED"))
	if err := q.override(); err != nil {
		return err
	}
	w := &sender{ResponseWriter: q.Exchange, encoding: q.Header().Get("Content-Encoding"), page: q.page}
	q.Header().Del("Content-Encoding")
	err := content.Send(w, r, o.LastModified, stored)
	switch {
	case errors.Is(err, content.ErrCutOff):
		q.Call.Note("cut_off", "true")
		_ = q.engine.Objects.Unreadable(o, err)
		panic(http.ErrAbortHandler) // so that no client takes a truncated response for complete
	case err != nil:
		return fmt.Errorf("%w: %w", errStored, err)
	case w.refused == http.StatusPreconditionFailed:
		return failedCondition(readCondition(r.Header))
	case w.refused != 0:
		return invalidRange(r.Header.Get("Range"), stored.Size())
	}
	return nil
}

// readCondition returns the condition for which a download was refused. One by time counts only without one by tag.
func readCondition(h http.Header) string {
	if h.Get("If-Match") != "" {
		return "If-Match"
	}
	return "If-Unmodified-Since"
}

func invalidRange(wanted string, size int64) error {
	return fail("InvalidRange", "The requested range is not satisfiable").with("RangeRequested", wanted).
		with("ActualObjectSize", strconv.FormatInt(size, 10))
}

// isOneRange reports whether a Range is one that S3 serves; it ignores others.
func isOneRange(text string) bool {
	match := oneRange.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	first, err1 := strconv.ParseUint(match[1], 10, 64)
	last, err2 := strconv.ParseUint(match[2], 10, 64)
	return err1 != nil || err2 != nil || first <= last
}

var oneRange = regexp.MustCompile(`^bytes=(?:([0-9]+)-([0-9]*)|-[0-9]+)$`)

// overrides are the parameters that replace headers of the response.
func overrides() map[string]string {
	return map[string]string{
		"response-content-type": "Content-Type", "response-content-language": "Content-Language", "response-expires": "Expires",
		"response-cache-control": "Cache-Control", "response-content-disposition": "Content-Disposition",
		"response-content-encoding": "Content-Encoding",
	}
}

func (q *request) override() error {
	for parameter, header := range overrides() {
		if value := q.query.Get(parameter); value != "" {
			if !model.IsStorable(value, model.MaxStoredHeader) {
				return fail("InvalidArgument", "The parameter %s is not valid in a header", parameter)
			}
			q.Header().Set(header, value)
		}
	}
	return nil
}

// sender keeps refusals of http.ServeContent from the client, so that they get a body in XML. It sets the
// Content-Encoding late, because ServeContent omits the length of content that has one.
type sender struct {
	http.ResponseWriter
	encoding string
	page     int // the status of the page that a website shows, 0 elsewhere
	refused  int
}

// WriteHeader implements http.ResponseWriter.
func (s *sender) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		s.refused = status
		content.Withdraw(s.Header())
		return
	}
	if s.encoding != "" {
		s.Header().Set("Content-Encoding", s.encoding)
	}
	if s.page != 0 { // its origin is its own
		s.Header().Del("Content-Security-Policy")
	}
	if s.page != 0 && status == http.StatusOK {
		status = s.page
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	if s.refused != 0 {
		return len(p), nil
	}
	return s.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom: the kernel can send a file.
func (s *sender) ReadFrom(src io.Reader) (int64, error) { return io.Copy(s.ResponseWriter, src) }

// Unwrap implements the interface that http.ResponseController uses.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }
