package sigv4

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

// TestFormVersion2 checks that a form with a signature of version 2 is refused with the hint that other requests with one get.
func TestFormVersion2(t *testing.T) {
	fields := map[string]string{"awsaccesskeyid": "key", "policy": "e30=", "signature": "x"}
	_, err := ParseForm(fields, nil)
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Code != "InvalidRequest" || len(refused.Details) != 1 || refused.Details[0].Name != "Hint" {
		t.Errorf("%+v", err)
	}
}

// TestFormLife verifies a form whose policy is as old as its signing key may be, and one that is older.
func TestFormLife(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fields := map[string]string{
		"policy": "e30=", "x-amz-algorithm": algorithm, "x-amz-date": at.Format(timeFormat),
		"x-amz-credential": "key/20260301/us-east-1/s3/aws4_request",
		"x-amz-signature":  hex.EncodeToString(mac(signingKey("secret", "20260301", "us-east-1"), "e30=")),
	}
	q, err := ParseForm(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	for after, code := range map[time.Duration]string{
		0: "", FormLife: "", FormLife + time.Second: "AccessDenied", -MaxSkew: "", -MaxSkew - time.Second: "AccessDenied",
	} {
		got := ""
		if refused, ok := errors.AsType[*Error](q.VerifyForm("secret", "us-east-1", at.Add(after))); ok {
			got = refused.Code
		}
		if got != code {
			t.Errorf("after %v: %q, not %q", after, got, code)
		}
	}
	for field, value := range map[string]string{"x-amz-credential": "key/20260302/us-east-1/s3/aws4_request", "x-amz-date": "20260302T000000Z"} {
		changed := map[string]string{}
		for name, old := range fields {
			changed[name] = old
		}
		changed[field] = value
		q, err := ParseForm(changed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.VerifyForm("secret", "us-east-1", at) == nil {
			t.Errorf("another %s is accepted", field)
		}
	}
}
