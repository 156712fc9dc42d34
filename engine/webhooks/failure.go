package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"holdfast/engine/model"
)

// failure is why an attempt failed. Its text is shown to the organization, so it says nothing that the host sent; the
// cause is for the log.
type failure struct {
	text  string
	cause error
}

// Error implements error.
func (f *failure) Error() string {
	if f.cause == nil {
		return f.text
	}
	return fmt.Sprintf("%s: %v", f.text, f.cause)
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

var (
	errPrivate   = &failure{text: "the host's address is not public"}
	errNoAddress = &failure{text: "the host has no address"}
	errPlain     = &failure{text: "http is only for private hosts: use https"}
)

// shown returns the text of an error that the organization sees, "" for none.
func shown(err error) string {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return model.CleanText(f.text, model.MaxEventMessage)
	}
	return "the appliance could not send the request"
}

// failed returns the failure of a request.
func failed(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*failure](err); ok && ctx.Err() == nil {
		return f
	}
	return &failure{describe(ctx, err), err}
}

func describe(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return noAnswer
	}
	if invalid, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return describeCertificate(invalid)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the host does not speak TLS"
	}
	dialing, ok := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the host refused the connection"
	case ok && dialing.Op == "dial":
		return "the host could not be reached"
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return noAnswer
	}
	return "the host did not answer with HTTP"
}

func describeCertificate(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the host's certificate is of an unknown authority"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the host's certificate is for another name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the host's certificate has expired, or is not valid yet"
	}
	return "the host's certificate is not valid"
}
