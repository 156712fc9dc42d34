package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"holdfast/server/api/wire"
)

// ErrChanged means that the content being downloaded or uploaded has changed.
var ErrChanged = errors.New("it was changed meanwhile")

// OpenDownload opens the object or export at a signed URL, starting at offset.
// If etag is not empty and the content has another version, it returns
// ErrChanged. The key is not sent.
func (c *Client) OpenDownload(ctx context.Context, signedURL, etag string, offset int64) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, signedURL, nil)
	if err != nil {
		return nil, fmt.Errorf("the download's URL: %w", err)
	}
	request.Header.Set("User-Agent", c.userAgent)
	request.Header.Set("Accept-Encoding", "identity") // ranges count bytes of the identity encoding
	if etag != "" {
		request.Header.Set("If-Match", etag)
	}
	if offset > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	answer, err := c.steadily(request)
	if err != nil {
		return nil, err
	}
	if err := checkDownload(answer, offset); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

func checkDownload(answer *http.Response, offset int64) error {
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return ErrChanged
	case offset == 0 && answer.StatusCode == http.StatusOK, offset > 0 && answer.StatusCode == http.StatusPartialContent:
		return nil
	case answer.StatusCode == http.StatusNotFound:
		return &Error{Status: answer.StatusCode, Code: wire.CodeNotFound, Message: "the download link leads nowhere: it is gone, or the link has expired"}
	case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "" && isPlainText(answer):
		return &Error{Status: answer.StatusCode, Code: wire.CodeInternal, Message: reason(answer), RetryAfter: pauseAsked(answer)}
	case byGateway(answer):
		return notAPI(answer)
	default:
		return &Error{Status: answer.StatusCode, Message: "the download failed: " + told(answer)}
	}
}

// isPlainText reports whether a response is a text for people, such as the appliance's about an object that it cannot read now.
func isPlainText(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "text/plain"
}

// maxReason is the most bytes that are read of a response's text.
const maxReason = 1 << 10

// reason returns the text of a response, in one line.
func reason(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason))
	return cmp.Or(strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " "), told(answer))
}
