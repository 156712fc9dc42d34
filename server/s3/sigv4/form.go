package sigv4

import (
	"net/http"
	"time"
)

// FormLife is how long after its signature an HTML form may be sent, if its policy does not end before: a signing key
// is good for that long.
const FormLife = 7 * 24 * time.Hour

// formFields are the fields of the authorization of an HTML form.
func formFields() []string {
	return []string{"policy", "x-amz-signature", "x-amz-credential", "x-amz-date", "x-amz-algorithm"}
}

// ParseForm reads the authorization of an HTML form that uploads a file, given its other fields by their names in lower
// case. The header has those that stand for headers of a PUT; Body verifies the checksums among them.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-authentication-HTTPPOST.html
func ParseForm(fields map[string]string, header http.Header) (*Request, error) {
	q := &Request{form: true, http: &http.Request{Header: header, ContentLength: -1}, payload: unsignedPayload}
	if _, version2 := fields["awsaccesskeyid"]; version2 && fields["x-amz-signature"] == "" {
		return nil, refuseVersion2()
	}
	var missing []string
	for _, name := range formFields() {
		if _, ok := fields[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == len(formFields()) {
		return nil, refuse("AccessDenied", "Access Denied.")
	}
	if len(missing) > 0 {
		return nil, MissingField(missing[0])
	}
	if kind := fields["x-amz-algorithm"]; kind != algorithm {
		return nil, invalidArgument("X-Amz-Algorithm", kind, "Only AWS4-HMAC-SHA256 is supported")
	}
	if _, ok := fields["x-amz-security-token"]; ok {
		return nil, invalidToken()
	}
	at, err := time.Parse(timeFormat, fields["x-amz-date"])
	if err != nil {
		return nil, invalidArgument("X-Amz-Date", fields["x-amz-date"], "X-Amz-Date must be formated via ISO8601 Long format")
	}
	q.at, q.policy, q.signature = at, fields["policy"], fields["x-amz-signature"]
	return q, q.parseCredential(fields["x-amz-credential"])
}

// MissingField refuses a form without a field.
func MissingField(name string) error {
	return invalidArgument(name, "", "Bucket POST must contain a field named '"+name+"'.  If it is specified, please check the order of the fields.")
}

// VerifyForm is Verify for a form: it checks the signature of its policy.
func (q *Request) VerifyForm(secret, region string, now time.Time) error {
	for _, check := range []error{q.checkScope(region), q.checkFormTime(now)} {
		if check != nil {
			return check
		}
	}
	q.key = signingKey(secret, q.date, q.region)
	if !sameHash(q.sign(q.stringToSign()), q.signature) {
		return q.mismatch()
	}
	return nil
}

// checkFormTime requires a form to be sent within its life. Its policy ends before, as a rule.
func (q *Request) checkFormTime(now time.Time) error {
	if now.After(q.at.Add(FormLife)) {
		return refuse("AccessDenied", "Invalid according to Policy: Policy expired.")
	}
	if now.Before(q.at.Add(-MaxSkew)) {
		return refuse("AccessDenied", "Request is not valid yet.")
	}
	return nil
}
