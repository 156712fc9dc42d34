package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Resettable is a field of a change. The zero value leaves it unchanged; null, which
// [Default] makes, restores the default.
type Resettable[T any] struct {
	given bool
	value *T
}

// SetTo returns a field that is changed to value.
func SetTo[T any](value T) Resettable[T] { return Resettable[T]{true, &value} }

// Default returns a field whose default is restored.
func Default[T any]() Resettable[T] { return Resettable[T]{given: true} }

// Value returns the new value, nil for the default. given reports whether the field is
// to be changed at all.
func (r Resettable[T]) Value() (value *T, given bool) { return r.value, r.given }

// IsZero reports whether the field is left unchanged.
func (r Resettable[T]) IsZero() bool { return !r.given }

// Of returns the type of the values.
func (Resettable[T]) Of() reflect.Type { return reflect.TypeFor[T]() }

// MarshalJSON implements json.Marshaler.
func (r Resettable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(r.value) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Resettable[T]) UnmarshalJSON(text []byte) error {
	r.given, r.value = true, nil
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	r.value = new(T)
	return json.Unmarshal(text, r.value)
}
