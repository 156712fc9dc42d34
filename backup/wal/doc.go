// Package wal archives the write-ahead log of one database.
package wal
