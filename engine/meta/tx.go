package meta

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// Tx is a transaction: a snapshot in View, a change in Update. It is valid
// only until the function it was given to returns.
type Tx struct {
	bolt      *bbolt.Tx
	committed *[]func() // what OnCommit was given
	batch     *batch    // nil unless many changes of objects follow each other
}

// OnCommit has then called once the transaction is durable, by the goroutine
// that called Update and before Update returns. In View it is never called.
func (tx *Tx) OnCommit(then func()) {
	if tx.committed != nil {
		*tx.committed = append(*tx.committed, then)
	}
}

const settingsBucket = "settings"

// Setting returns a value kept under name, nil when there is none. The bytes
// are the caller's.
func (tx *Tx) Setting(name string) []byte {
	value := tx.bolt.Bucket([]byte(settingsBucket)).Get([]byte(name))
	return append([]byte(nil), value...)
}

// PutSetting keeps a copy of value under name.
func (tx *Tx) PutSetting(name string, value []byte) error {
	return tx.bolt.Bucket([]byte(settingsBucket)).Put([]byte(name), bytes.Clone(value))
}
