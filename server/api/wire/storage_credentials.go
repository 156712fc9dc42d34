package wire

// StorageCredentials are an API key in the form that clients of the S3 protocol need.
type StorageCredentials struct {
	AccessKeyID     string  `json:"access_key_id" doc:"The id of the key."`
	SecretAccessKey string  `json:"secret_access_key" doc:"Derived from the key's id by the appliance; the same each time."`
	Endpoint        *string `json:"endpoint" doc:"URL of the S3 endpoint; null if the appliance serves none."`
	Region          string  `json:"region"`
}
