package wal

import (
	"holdfast/internal/durable"
)

// Occupied returns the disk usage of the archive's files. A read-only archive does
// not count it.
func (a *Archive) Occupied() int64 { return a.footprint.Bytes() }

// Occupied returns how many bytes the files of the archive in dir occupy on
// disk, without opening it. Where there is none it is 0.
func Occupied(dir string) (int64, error) { return durable.MeasureOccupied(dir) }
