package wal

import "errors"

// ErrGap means that WAL is missing between two LSNs.
var ErrGap = errors.New("WAL is missing")
