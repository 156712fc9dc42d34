package meta

import (
	"fmt"

	"holdfast/engine/model"
)

// totalsBucket holds the sum of each organization's records. Like indexes, tables
// update it in the transaction of every change, so limits are checked against exact
// values and nothing is counted by walking.
const totalsBucket = "totals"

// Totals returns the sum of an organization's records.
func (tx *Tx) Totals(organization string) (model.Totals, error) {
	return readTotals(tx.bolt.Bucket([]byte(totalsBucket)).Get([]byte(organization)), organization)
}

func readTotals(data []byte, organization string) (model.Totals, error) {
	var totals model.Totals
	if data == nil {
		return totals, nil
	}
	err := decodeRecord("totals/"+organization, data, &totals)
	return totals, err
}

// count subtracts before from the totals and adds after; either may be nil.
func (t Table[T]) count(before, after *T) error {
	if t.tally == nil {
		return nil
	}
	change := map[string]model.Totals{}
	for by, record := range map[int64]*T{-1: before, 1: after} {
		if record != nil {
			organization, add := t.tally(record)
			change[organization] = change[organization].Plus(add, by)
		}
	}
	for organization, by := range change {
		if err := addTotals(t.tx.Bucket([]byte(totalsBucket)), organization, by); err != nil {
			return fmt.Errorf("count %s: %w", t.name, err)
		}
	}
	return nil
}

func addTotals(b *boltBucket, organization string, by model.Totals) error {
	if by == (model.Totals{}) {
		return nil
	}
	totals, err := readTotals(b.Get([]byte(organization)), organization)
	if err != nil {
		return err
	}
	data, err := encodeRecord(totals.Plus(by, 1))
	if err != nil {
		return err
	}
	return b.Put([]byte(organization), data)
}
