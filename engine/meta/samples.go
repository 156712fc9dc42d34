package meta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"holdfast/engine/model"
)

// The samples bucket contains a bucket for each database, which contains one for
// each series; samples are keyed by the second they began.
const samplesBucket = "samples"

// PutSample stores a sample, replacing one that began at the same time.
func (tx *Tx) PutSample(database string, series model.Series, sample model.Sample) error {
	b, err := tx.bolt.Bucket([]byte(samplesBucket)).CreateBucketIfNotExists([]byte(database))
	if err == nil {
		b, err = b.CreateBucketIfNotExists([]byte(series.Name))
	}
	if err != nil {
		return fmt.Errorf("make samples bucket: %w", err)
	}
	data, err := encodeRecord(sample)
	if err != nil {
		return err
	}
	if err := b.Put(sampleKey(sample.At), data); err != nil {
		return fmt.Errorf("store sample: %w", err)
	}
	return nil
}

// PruneSamples removes those of a database's samples that have left the series' ring, whose newest sample began at newest, so
// the rings limit the size of the samples. Later ones stay: whether a clock that was ahead has dated them, or newest is of one that
// is behind, cannot be told.
func (tx *Tx) PruneSamples(database string, series model.Series, newest time.Time) error {
	b := tx.samplesOf(database, series)
	if b == nil {
		return nil
	}
	oldest := sampleKey(newest.Add(-time.Duration(series.Keep-1) * series.Step))
	cursor := b.Cursor()
	for key, _ := cursor.First(); key != nil && bytes.Compare(key, oldest) < 0; key, _ = cursor.First() {
		if err := b.Delete(key); err != nil {
			return fmt.Errorf("prune samples: %w", err)
		}
	}
	return nil
}

// samplesOf returns the bucket of a series of a database, nil if it has no samples.
func (tx *Tx) samplesOf(database string, series model.Series) *boltBucket {
	b := tx.bolt.Bucket([]byte(samplesBucket)).Bucket([]byte(database))
	if b == nil {
		return nil
	}
	return b.Bucket([]byte(series.Name))
}

// Samples returns a database's samples of a series that began at or after since,
// oldest first.
func (tx *Tx) Samples(database string, series model.Series, since time.Time) ([]model.Sample, error) {
	b := tx.samplesOf(database, series)
	if b == nil {
		return nil, nil
	}
	var samples []model.Sample
	cursor := b.Cursor()
	for key, data := cursor.Seek(sampleKey(since)); key != nil; key, data = cursor.Next() {
		var sample model.Sample
		if err := decodeRecord("samples/"+database, data, &sample); err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// DropSamples removes all of a database's samples. Having none is not an error.
func (tx *Tx) DropSamples(database string) error {
	err := tx.bolt.Bucket([]byte(samplesBucket)).DeleteBucket([]byte(database))
	if err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
		return fmt.Errorf("remove samples: %w", err)
	}
	return nil
}

func sampleKey(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(at.Unix(), 0)))
}
