package wire

// AuthorizeDevice is a device authorization request (RFC 8628, section 3.1).
type AuthorizeDevice struct {
	ClientName  *string      `json:"client_name,omitzero" required:"false" maxLength:"128" doc:"What the person is shown; printable characters."`
	ScopePreset *ScopePreset `json:"scope_preset,omitzero" required:"false" doc:"read_only when left out. The person may grant less."`
}

// DeviceCodes is a device authorization response (RFC 8628, section 3.2).
type DeviceCodes struct {
	DeviceCode              string `json:"device_code" doc:"Poll POST /device/token with it. A secret."`
	UserCode                string `json:"user_code" example:"WDJB-MJHT" doc:"Show it to the person."`
	VerificationURI         string `json:"verification_uri" doc:"Where the person enters the code."`
	VerificationURIComplete string `json:"verification_uri_complete" doc:"The same with the code in it."`
	ExpiresIn               int    `json:"expires_in" doc:"Seconds for which the codes are valid."`
	Interval                int    `json:"interval" doc:"Seconds to wait between two polls."`
}

// PollDevice is a device's poll for its key.
type PollDevice struct {
	DeviceCode string `json:"device_code" minLength:"1" maxLength:"256"`
}

// DeviceToken is the response to the one poll that collects the key.
type DeviceToken struct {
	APIKey       string       `json:"api_key" doc:"The key, delivered exactly once."`
	Key          Key          `json:"key"`
	Organization Organization `json:"organization"`
	Projects     []Project    `json:"projects"`
}
