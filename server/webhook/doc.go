// Package webhook reports failures to the operator's URL by signed requests as specified by Standard Webhooks
// (standardwebhooks.com): the headers webhook-id, webhook-timestamp and webhook-signature, the last an HMAC-SHA-256
// over id, timestamp and body with the key in the secret file. Failed deliveries are retried for half a day; if too
// many messages wait, the newest are kept.
package webhook
