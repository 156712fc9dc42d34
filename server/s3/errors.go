package s3

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// failure is an error with a code of S3.
type failure struct {
	code    string
	public  *model.Error
	details []sigv4.Detail // further elements of the response
}

// Error implements error.
func (f *failure) Error() string { return f.public.Error() }

// Unwrap returns the error for the log and the audit log.
func (f *failure) Unwrap() error { return f.public }

// fail returns an error with a code of S3.
func fail(code, format string, args ...any) *failure {
	return &failure{code: code, public: model.Errorf(kindOf(code), format, args...)}
}

// with adds an element to the response.
func (f *failure) with(name, value string) *failure {
	f.details = append(f.details, sigv4.Detail{Name: name, Value: value})
	return f
}

// notImplemented refuses a header whose neglect would betray the client.
func notImplemented(header, reason string) error {
	f := fail("NotImplemented", "A header you provided implies functionality that is not implemented.").with("Header", header)
	if reason != "" {
		f.with("additionalMessage", reason)
	}
	return f
}

// invalidArgument refuses the value of a header, a parameter or an element.
func invalidArgument(name, value, format string, args ...any) error {
	return fail("InvalidArgument", format, args...).with("ArgumentName", name).with("ArgumentValue", value)
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
	case "AccessDenied", "AccessForbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed":
		return http.StatusForbidden
	case "NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NoSuchVersion", "NoSuchTagSet", "NoSuchObjectLockConfiguration", "ObjectLockConfigurationNotFoundError", "NoSuchBucketPolicy", "NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration",
		"NoSuchPublicAccessBlockConfiguration", "NoSuchWebsiteConfiguration", "OwnershipControlsNotFoundError",
		"ReplicationConfigurationNotFoundError", "ServerSideEncryptionConfigurationNotFoundError":
		return http.StatusNotFound
	case "MethodNotAllowed":
		return http.StatusMethodNotAllowed
	case "BucketAlreadyOwnedByYou", "BucketNotEmpty", "OperationAborted", "InvalidBucketState":
		return http.StatusConflict
	case "MissingContentLength":
		return http.StatusLengthRequired
	case "PreconditionFailed":
		return http.StatusPreconditionFailed
	case "InvalidRange", "InvalidPartNumber":
		return http.StatusRequestedRangeNotSatisfiable
	case "NotImplemented":
		return http.StatusNotImplemented
	case "SlowDown", "ServiceUnavailable":
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
	case errors.Is(err, objects.ErrNoLock):
		return "InvalidRequest"
	case errors.Is(err, objects.ErrBucketState):
		return "InvalidBucketState"
	case errors.Is(err, objects.ErrNoVersion):
		return "NoSuchVersion"
	case errors.Is(err, objects.ErrParts):
		return "InvalidPart"
	case errors.Is(err, objects.ErrSize):
		return "InvalidRequest"
	case errors.Is(err, objects.ErrPartOrder):
		return "InvalidPartOrder"
	case errors.Is(err, objects.ErrPartSize):
		return "EntityTooSmall"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "IncompleteBody"
	case errors.Is(err, objects.ErrAway): // clients try again
		return "SlowDown"
	}
	if public, ok := errors.AsType[*model.Error](err); ok && public.Reason == model.ReasonNoSpace { // they do here, too
		return "ServiceUnavailable"
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
		return &failure{r.Code, model.Errorf(kindOf(r.Code), "%s", r.Message), r.Details}
	}
	return err
}

// errorBody is the body of every error.
type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Details   []detail
	Resource  string
	RequestID string `xml:"RequestId"`
	HostID    string `xml:"HostId"`
}

// detail is an element with a name of its own.
type detail struct {
	XMLName xml.Name
	Value   string `xml:",chardata"`
}

// regionDetail names the right region, which s3cmd asks for by using a wrong one.
const regionDetail = "Region"

// detailsOf returns the elements that the response to an error has beside those of all errors.
func (q *request) detailsOf(code string) (all []detail) {
	add := func(name, value string) { all = append(all, detail{xml.Name{Local: name}, value}) }
	switch code {
	case "NoSuchBucket", "BucketNotEmpty", "BucketAlreadyOwnedByYou", "InvalidBucketName":
		add("BucketName", cmp.Or(q.missing.bucket, q.bucket))
	case "NoSuchKey":
		add("Key", cmp.Or(q.missing.key, q.key))
	case "NoSuchUpload":
		add("UploadId", q.query.Get("uploadId"))
	}
	if errors.Is(q.Err(), objects.ErrLocked) { // why
		add("additionalMessage", model.PublicMessage(q.Err()))
	}
	if f, ok := errors.AsType[*failure](q.Err()); ok {
		for _, d := range f.details {
			add(d.Name, d.Value)
		}
	}
	return all
}

// messageOf returns the message of S3 for a code whose cause has words of its own.
func messageOf(code, message string) string {
	switch code {
	case "NoSuchBucket":
		return "The specified bucket does not exist."
	case "NoSuchKey":
		return "The specified key does not exist."
	case "NoSuchVersion":
		return "The specified version does not exist."
	case "InvalidPart":
		return "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag."
	case "InvalidPartOrder":
		return "The list of parts was not in ascending order. Parts must be ordered by part number."
	case "EntityTooSmall":
		return "Your proposed upload is smaller than the minimum allowed size"
	case "NoSuchUpload":
		return "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."
	}
	return message
}

// lockMessage returns the message of S3 for what Object Lock refuses, "" for all else.
func lockMessage(x *gate.Exchange) string {
	header := x.Request.Header
	switch {
	case errors.Is(x.Err(), objects.ErrLocked):
		return "Access Denied because object protected by object lock."
	case errors.Is(x.Err(), objects.ErrNoLock) && (header.Get("X-Amz-Object-Lock-Mode") != "" || header.Get("X-Amz-Object-Lock-Legal-Hold") != ""):
		return "Bucket is missing ObjectLockConfiguration"
	case errors.Is(x.Err(), objects.ErrNoLock):
		return "Bucket is missing Object Lock Configuration"
	case errors.Is(x.Err(), objects.ErrBucketState) && requestOf(x).subresource() == "versioning":
		return "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed."
	case errors.Is(x.Err(), objects.ErrBucketState):
		return "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"
	}
	return ""
}

// writeError writes the response to an error.
func writeError(x *gate.Exchange, public *model.Error) {
	code := codeOf(x.Err(), x.Call.Resource.Type)
	if public.IsInternal() {
		code = "InternalError"
	}
	message := cmp.Or(lockMessage(x), messageOf(code, public.Message))
	x.Header().Del("WWW-Authenticate")
	x.Header().Set("Content-Type", "application/xml")
	q := requestOf(x)
	q.Exchange = x // an admission that fails has not set it
	details := q.detailsOf(code)
	if i := slices.IndexFunc(details, func(d detail) bool { return d.XMLName.Local == regionDetail }); i >= 0 {
		x.Header().Set("X-Amz-Bucket-Region", details[i].Value)
	}
	x.WriteHeader(statusOf(code))
	if x.Request.Method == http.MethodHead {
		return
	}
	text, err := xml.Marshal(errorBody{Code: code, Message: message, Details: details, Resource: x.Request.URL.Path, RequestID: x.Call.RequestID, HostID: "holdfast"})
	if err == nil {
		_, _ = fmt.Fprintf(x, "%s%s", q.prologue(), text)
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
