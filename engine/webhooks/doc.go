// Package webhooks sends events to the URLs that organizations and the operator name, by signed requests as specified
// by Standard Webhooks (standardwebhooks.com).
//
// The transaction that records an event records its deliveries too (engine/meta). This package sends those that are
// due, tries failed ones again for more than a day, and records how each attempt ended. A delivery is sent at least
// once: after a crash it may be sent again, always with the id of its event.
//
// The URLs of organizations are a stranger's input: see destination.go for where requests may go.
package webhooks
