// Package objectstoretest tests stores of objects. [Run] is the suite that every
// objectstore.Store passes, [Servers] starts real S3 servers, and [Proxy] stands in
// front of one and injects faults.
package objectstoretest
