package stream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/zeebo/blake3"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Marker is the only object that is not encrypted. It says what the prefix is.
type Marker struct {
	Repository string    `json:"repository"` // random
	Created    time.Time `json:"created"`
}

const markerTitle = "holdfast off-site repository 1 "

// encode returns the marker as it is stored: a line with the hash of the rest.
func (m Marker) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the marker: %w", err)
	}
	sum := blake3.Sum256(b)
	return fmt.Appendf(nil, "%s%s\n%s", markerTitle, hex.EncodeToString(sum[:]), b), nil
}

func decodeMarker(text string) (m Marker, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	want, ok := strings.CutPrefix(first, markerTitle)
	if !ok && strings.HasPrefix(first, "holdfast off-site repository ") {
		return m, ErrVersion
	}
	sum := blake3.Sum256([]byte(rest))
	if !ok || want != hex.EncodeToString(sum[:]) {
		return m, corrupt("the marker is malformed")
	}
	if err := json.Unmarshal([]byte(rest), &m); err != nil {
		return m, corrupt("the marker: %w", err)
	}
	return m, nil
}

// Init makes an empty prefix a repository: its marker, and a first master key that is
// wrapped for the recipients. It returns objectstore.ErrExists where one is already,
// ErrNoMarker where one has lost its marker, and ErrDeleted where one was deleted and can be brought back. It may be repeated after another error.
func Init(ctx context.Context, store objectstore.Store, now time.Time, recipients ...age.Recipient) (Marker, sealed.Key, error) {
	m, key := Marker{Repository: rand.Text(), Created: now.UTC()}, sealed.NewKey(1)
	if _, err := ReadMarker(ctx, store); !errors.Is(err, objectstore.ErrNotFound) {
		if err == nil {
			err = objectstore.ErrExists
		}
		return m, key, fmt.Errorf("initialize the repository: %w", err)
	}
	number, err := nextKeyNumber(ctx, store)
	if err == nil {
		key = sealed.NewKey(number)
		err = AddKey(ctx, store, key, recipients...)
	}
	b, encodeErr := m.encode()
	if err = errors.Join(err, encodeErr); err == nil {
		err = store.Create(ctx, markerKey, objectstore.Bytes(b), objectstore.CreateOptions{})
	}
	if err != nil {
		return m, key, fmt.Errorf("initialize the repository: %w", err)
	}
	return m, key, nil
}

// nextKeyNumber returns the number after those of keys that an interrupted Init left.
func nextKeyNumber(ctx context.Context, store objectstore.Store) (uint32, error) {
	numbers, err := keyNumbers(ctx, store)
	if err != nil || len(numbers) == 0 {
		return 1, err
	}
	return numbers[len(numbers)-1] + 1, nil
}

// ReadMarker returns objectstore.ErrNotFound where there is no repository, ErrNoMarker
// where there is the data of one, and ErrDeleted where there are only earlier versions.
func ReadMarker(ctx context.Context, store objectstore.Store) (Marker, error) {
	m, err := reread(func() (Marker, error) {
		b, err := getPlain(ctx, store, markerKey)
		if err != nil {
			return Marker{}, err
		}
		return decodeMarker(string(b))
	})
	if errors.Is(err, objectstore.ErrNotFound) {
		if has, listErr := hasData(ctx, store); has || listErr != nil {
			err = cmp.Or(listErr, ErrNoMarker)
		} else if deleted, listErr := wasDeleted(ctx, store); deleted || listErr != nil {
			err = cmp.Or(listErr, ErrDeleted)
		}
	}
	if err != nil {
		return m, fmt.Errorf("read the repository's marker: %w", err)
	}
	return m, nil
}

// CheckMarker returns nil if the marker can be read, else an error for which Damaged does not hold: ErrAbsent, or the store's.
func (r *Repository) CheckMarker(ctx context.Context) error {
	_, err := ReadMarker(ctx, r.store)
	if Damaged(err) || errors.Is(err, ErrNoMarker) || errors.Is(err, ErrDeleted) {
		return fmt.Errorf("%w: %v", ErrAbsent, err)
	}
	return err
}

// hasData reports whether a prefix has claims, or what was written below them. Master keys
// alone are not data: an interrupted Init leaves one.
func hasData(ctx context.Context, store objectstore.Store) (bool, error) {
	for _, prefix := range []string{epochsPrefix, dataPrefix} {
		for _, err := range store.List(ctx, prefix, "") {
			return err == nil, err
		}
	}
	return false, nil
}

// wasDeleted reports whether delete markers hide what was in a prefix. Where versions cannot be deleted, they hide what probes
// leave too, which does not count.
func wasDeleted(ctx context.Context, store objectstore.Store) (bool, error) {
	for _, prefix := range []string{markerKey, keysPrefix, epochsPrefix, dataPrefix} {
		if deleted, err := store.Hidden(ctx, prefix); deleted || err != nil {
			return deleted, err
		}
	}
	return false, nil
}

// announcement returns the key of the object that says that a master key follows those before it. It is sealed with one of
// them, so only those who have one can make it, and those who lack the new key know that there is one.
func announcement(number uint32) string { return fmt.Sprintf("keys/%d.announced", number) }

// LaterKeyError means that a repository has a master key of a later number than those that were opened.
type LaterKeyError struct{ Number uint32 }

func (e *LaterKeyError) Error() string {
	return fmt.Sprintf("the store has master key %d, which nothing that was given opens", e.Number)
}

// Rotate adds a master key after those that the repository has, and returns it. The recipients open it. It may be repeated
// after an error. It returns a LaterKeyError, and changes nothing, where the store has a key after those that were opened: an
// earlier try may have stored it, and what is sealed with it would be lost with it.
func (r *Repository) Rotate(ctx context.Context, recipients ...age.Recipient) (sealed.Key, error) {
	key, _, err := r.keys.Rotate()
	if err == nil {
		err = r.refuseLaterKey(ctx)
	}
	if err != nil {
		return key, err
	}
	name := announcement(key.Number())
	if err := r.createSmall(ctx, name, []byte(name), objectstore.Retention{}); err != nil {
		return key, fmt.Errorf("announce a master key: %w", err)
	}
	return key, AddKey(ctx, r.store, key, recipients...)
}

// refuseLaterKey also looks for the next key by its name: a list may be older than what was just stored.
func (r *Repository) refuseLaterKey(ctx context.Context) error {
	newest := r.keys.Newest().Number()
	numbers, err := keyNumbers(ctx, r.store)
	if err != nil {
		return fmt.Errorf("list the master keys: %w", err)
	}
	if len(numbers) > 0 && numbers[len(numbers)-1] > newest {
		return &LaterKeyError{numbers[len(numbers)-1]}
	}
	_, err = r.store.Stat(ctx, sealed.KeyName(newest+1))
	switch {
	case err == nil:
		return &LaterKeyError{newest + 1}
	case errors.Is(err, objectstore.ErrNotFound):
		return nil
	}
	return fmt.Errorf("look for a later master key: %w", err)
}

// laterKeyAnnounced reports whether there is a master key that this process lacks.
func (r *Repository) laterKeyAnnounced(ctx context.Context) (bool, error) {
	newest := r.keys.Newest().Number()
	for info, err := range r.store.List(ctx, keysPrefix, "") {
		if err != nil {
			return false, fmt.Errorf("list the master keys: %w", err)
		}
		var number uint32
		if _, err := fmt.Sscanf(info.Key, "keys/%d.announced", &number); err != nil || announcement(number) != info.Key || number <= newest {
			continue
		}
		if _, err := r.get(ctx, info.Key, maxSmall); err == nil || !Damaged(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// AddKey stores a wrapped master key. Nothing may be sealed with it before.
func AddKey(ctx context.Context, store objectstore.Store, key sealed.Key, recipients ...age.Recipient) error {
	b, err := sealed.Wrap(key, recipients...)
	if err != nil {
		return err
	}
	return store.Create(ctx, sealed.KeyName(key.Number()), objectstore.Bytes(b), objectstore.CreateOptions{})
}

// EarlierKeyError means that a later master key than Number was opened and that one was not: Err wraps sealed.ErrLocked, or
// it is damaged or not found.
type EarlierKeyError struct {
	Number uint32
	Err    error
}

func (e *EarlierKeyError) Error() string { return fmt.Sprintf("master key %d: %v", e.Number, e.Err) }

// Unwrap returns Err.
func (e *EarlierKeyError) Unwrap() error { return e.Err }

// LoadKeys returns all master keys that unwrap opens, as sealed.Unwrap does. It returns
// sealed.ErrLocked when it opens none, and an EarlierKeyError when it opens only a later one: without an
// earlier key, the claims sealed with it look like a stranger's, and a new copy would begin without what was there.
// Later keys may be a stranger's, and are left out.
func LoadKeys(ctx context.Context, store objectstore.Store, unwrap func(wrapped []byte, number uint32) (sealed.Key, error)) (*sealed.Ring, error) {
	numbers, err := keyNumbers(ctx, store)
	if err != nil {
		return nil, fmt.Errorf("list the master keys: %w", err)
	}
	var keys []sealed.Key
	var closed []*EarlierKeyError // those that were not opened
	failed := fmt.Errorf("%w: the store holds no key", sealed.ErrNoKey)
	for _, n := range numbers {
		key, err := loadKey(ctx, store, n, unwrap)
		switch {
		case err == nil:
			keys = append(keys, key)
		case errors.Is(err, sealed.ErrLocked), Damaged(err):
			closed, failed = append(closed, &EarlierKeyError{n, err}), err
		default:
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, failed
	}
	ring, err := sealed.NewRing(keys...)
	if err == nil && len(closed) > 0 && closed[0].Number < ring.Newest().Number() {
		return nil, closed[0]
	}
	return ring, err
}

func loadKey(ctx context.Context, store objectstore.Store, number uint32, unwrap func([]byte, uint32) (sealed.Key, error)) (sealed.Key, error) {
	return reread(func() (sealed.Key, error) {
		b, err := getPlain(ctx, store, sealed.KeyName(number))
		if err != nil {
			return sealed.Key{}, fmt.Errorf("read master key %d: %w", number, err)
		}
		return unwrap(b, number)
	})
}

// keyNumbers returns the numbers of the stored keys in ascending order.
func keyNumbers(ctx context.Context, store objectstore.Store) (numbers []uint32, err error) {
	for info, err := range store.List(ctx, keysPrefix, "") {
		if err != nil {
			return nil, err
		}
		if n, ok := sealed.ParseKeyName(info.Key); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// getPlain reads a small object that is not sealed.
func getPlain(ctx context.Context, store objectstore.Store, key string) ([]byte, error) {
	o, err := store.Get(ctx, key, objectstore.Range{})
	if err != nil {
		return nil, err
	}
	if o.Length > maxSmall {
		return nil, errors.Join(corrupt("%s has %d bytes", key, o.Length), o.Close())
	}
	b, err := io.ReadAll(o)
	return b, errors.Join(err, o.Close())
}
