// Package webhook tells the operator's URL of what went wrong, by signed
// requests as Standard Webhooks has them (standardwebhooks.com): the headers
// webhook-id, webhook-timestamp and webhook-signature, the last an HMAC-SHA-256
// over id, timestamp and body with the key in the secret's file. What cannot be
// delivered is tried again for half a day; of what waits, the newest is kept.
package webhook
