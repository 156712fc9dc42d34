//go:build !linux

package wal

import "errors"

// alarm would tell that a file in a directory has been written to.
type alarm struct{ written chan struct{} }

func newAlarm(string) *alarm { return &alarm{} }

func (a *alarm) set() (fresh bool, err error) { return false, errors.ErrUnsupported }

func (a *alarm) close() {}
