package s3

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// failure is an error with a code of S3.
type failure struct {
	code   string
	public *model.Error
	region string // the right one, if the client has used another
}

// Error implements error.
func (f *failure) Error() string { return f.public.Error() }

// Unwrap returns the error for the log and the audit log.
func (f *failure) Unwrap() error { return f.public }

// fail returns an error with a code of S3.
func fail(code, format string, args ...any) error {
	return &failure{code: code, public: model.Errorf(kindOf(code), format, args...)}
}

// kindOf returns the engine's code for one of S3.
func kindOf(code string) model.Code {
	switch statusOf(code) {
	case http.StatusForbidden:
		return model.CodeUnauthorized
	case http.StatusNotFound:
		return model.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return model.CodeConflict
	}
	return model.CodeValidation
}

// statusOf returns the HTTP status of a code of S3.
func statusOf(code string) int {
	switch code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed":
		return http.StatusForbidden
	case "NoSuchBucket", "NoSuchKey", "NoSuchUpload":
		return http.StatusNotFound
	case "MethodNotAllowed":
		return http.StatusMethodNotAllowed
	case "BucketAlreadyOwnedByYou", "BucketNotEmpty", "OperationAborted":
		return http.StatusConflict
	case "MissingContentLength":
		return http.StatusLengthRequired
	case "PreconditionFailed":
		return http.StatusPreconditionFailed
	case "InvalidRange":
		return http.StatusRequestedRangeNotSatisfiable
	case "NotImplemented":
		return http.StatusNotImplemented
	case "SlowDown":
		return http.StatusServiceUnavailable
	case "InternalError":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// codeOf returns the code of S3 for an error. The resource is what the request is about.
func codeOf(err error, resource model.ResourceType) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	switch {
	case errors.Is(err, objects.ErrTooLarge):
		return "EntityTooLarge"
	case errors.Is(err, objects.ErrParts):
		return "InvalidPart"
	case errors.Is(err, objects.ErrPartOrder):
		return "InvalidPartOrder"
	case errors.Is(err, objects.ErrPartSize):
		return "EntityTooSmall"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "IncompleteBody"
	case errors.Is(err, objects.ErrAway): // clients try again
		return "SlowDown"
	}
	switch model.CodeOf(err) {
	case model.CodeUnauthorized, model.CodeInsufficientScope, model.CodeDangerousNotAllowed, model.CodeForbidden, model.CodeReadOnly:
		return "AccessDenied"
	case model.CodeNotFound:
		return missing(resource)
	case model.CodeConflict:
		return "OperationAborted"
	case model.CodeValidation:
		return "InvalidArgument"
	case model.CodeRateLimited:
		return "SlowDown"
	}
	return "InternalError"
}

// missing returns the code for a resource that does not exist.
func missing(resource model.ResourceType) string {
	switch resource {
	case model.ResourceBucket:
		return "NoSuchBucket"
	case model.ResourceUpload:
		return "NoSuchUpload"
	}
	return "NoSuchKey"
}

// refused turns a refusal of package sigv4 into a failure, and returns other errors unchanged.
func refused(err error) error {
	if r, ok := errors.AsType[*sigv4.Error](err); ok {
		return &failure{r.Code, model.Errorf(kindOf(r.Code), "%s", r.Message), r.Region}
	}
	return err
}

// errorBody is the body of every error.
type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Region    string `xml:",omitempty"` // the right one, which s3cmd asks for by using a wrong one
	Resource  string
	RequestID string `xml:"RequestId"`
	HostID    string `xml:"HostId"`
}

// writeError writes the response to an error.
func writeError(x *gate.Exchange, public *model.Error) {
	code := codeOf(x.Err(), x.Call.Resource.Type)
	if public.Code == model.CodeInternal {
		code = "InternalError"
	}
	message := public.Message
	switch code {
	case "NoSuchBucket":
		message = "The specified bucket does not exist."
	case "NoSuchKey":
		message = "The specified key does not exist."
	case "NoSuchUpload":
		message = "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."
	}
	x.Header().Del("WWW-Authenticate")
	x.Header().Set("Content-Type", "application/xml")
	region := ""
	if f, ok := errors.AsType[*failure](x.Err()); ok && f.region != "" {
		region = f.region
		x.Header().Set("X-Amz-Bucket-Region", region)
	}
	x.WriteHeader(statusOf(code))
	if x.Request.Method == http.MethodHead {
		return
	}
	text, err := xml.Marshal(errorBody{Code: code, Message: message, Region: region, Resource: x.Request.URL.Path, RequestID: x.Call.RequestID, HostID: "holdfast"})
	if err == nil {
		_, _ = fmt.Fprintf(x, "%s%s", requestOf(x).prologue(), text)
	}
}

// writeXML writes a document as the response.
func writeXML(x *gate.Exchange, document any) error {
	text, err := xml.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	x.Header().Set("Content-Type", "application/xml")
	_, _ = fmt.Fprintf(x, "%s%s", requestOf(x).prologue(), text) // the client may have gone
	return nil
}
