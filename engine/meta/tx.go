package meta

import (
	"bytes"
)

// Tx is a transaction: a snapshot in View, a change in Update. It is valid until
// the function it was passed to returns.
type Tx struct {
	bolt      boltTx
	committed *[]func()    // functions passed to OnCommit
	batch     *batch       // nil except in a transaction of many object changes
	events    *EventSource // nil where no events are recorded
	wakes     *wakes       // nil in View
	damage    *damageLog   // the damaged records that are met; nil where none are noted
}

func (tx *Tx) noteDamage(table, id string) {
	if tx.damage != nil {
		tx.damage.note(DamagedRecord{table, id})
	}
}

// OnCommit registers then to be called once the transaction is durable, by the
// goroutine that called Update and before Update returns. In View it is not called.
func (tx *Tx) OnCommit(then func()) {
	if tx.committed != nil {
		*tx.committed = append(*tx.committed, then)
	}
}

const settingsBucket = "settings"

// Setting returns the value stored under name, nil if there is none. The caller
// owns the bytes.
func (tx *Tx) Setting(name string) []byte {
	value := tx.bolt.Bucket([]byte(settingsBucket)).Get([]byte(name))
	return append([]byte(nil), value...)
}

// PutSetting stores a copy of value under name.
func (tx *Tx) PutSetting(name string, value []byte) error {
	return tx.bolt.Bucket([]byte(settingsBucket)).Put([]byte(name), bytes.Clone(value))
}
