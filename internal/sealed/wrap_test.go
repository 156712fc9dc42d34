package sealed

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"filippo.io/age"
)

func TestWrapToRecipients(t *testing.T) {
	mine, theirs, stranger := newIdentity(t), newIdentity(t), newIdentity(t)
	recipients, err := ParseRecipients("# safe\n" + mine.Recipient().String() + "\n\n" + theirs.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	key := NewKey(12)
	wrapped, err := Wrap(key, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []*age.X25519Identity{mine, theirs} {
		identities, err := ParseIdentities("# from the safe\n" + i.String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unwrap(wrapped, 12, identities...); err != nil || got != key {
			t.Errorf("a recipient cannot unwrap: %v", err)
		}
	}
	if _, err := Unwrap(wrapped, 12, stranger); !errors.Is(err, ErrLocked) {
		t.Errorf("a stranger unwraps: %v", err)
	}
	if _, err := Unwrap(wrapped, 13, mine); !errors.Is(err, ErrCorrupt) {
		t.Errorf("key 12 under the name of 13: %v", err)
	}
}

func TestWrapWithPassphrase(t *testing.T) {
	recipient, err := PassphraseRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	key := NewKey(1)
	wrapped, err := Wrap(key, recipient)
	if err != nil {
		t.Fatal(err)
	}
	for passphrase, want := range map[string]error{"correct horse": nil, "wrong": ErrLocked} {
		identity, err := PassphraseIdentity(passphrase)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unwrap(wrapped, 1, identity); !errors.Is(err, want) || (want == nil && got != key) {
			t.Errorf("with %q: %v, want %v", passphrase, err, want)
		}
	}
	if _, err := Unwrap(wrapped, 1, newIdentity(t)); !errors.Is(err, ErrLocked) {
		t.Errorf("an identity opens what a passphrase wrapped: %v", err)
	}
	if _, err := PassphraseRecipient(""); err == nil {
		t.Error("an empty passphrase is accepted")
	}
}

// TestUnwrapDamaged: a poisoned key file is refused, and takes neither all memory
// nor the secret out in an error.
func TestUnwrapDamaged(t *testing.T) {
	identity := newIdentity(t)
	wrapped, err := Wrap(NewKey(1), identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	for i := range wrapped {
		damaged := bytes.Clone(wrapped)
		damaged[i] ^= 1
		if _, err := Unwrap(damaged, 1, identity); err == nil {
			t.Fatalf("byte %d changed, and it unwraps", i)
		}
	}
	for n := range len(wrapped) {
		if _, err := Unwrap(wrapped[:n], 1, identity); err == nil {
			t.Fatalf("%d bytes of %d unwrap", n, len(wrapped))
		}
	}
	passphrase, err := PassphraseIdentity("x")
	if err != nil {
		t.Fatal(err)
	}
	greedy := []byte("age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 19\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n")
	for what, file := range map[string][]byte{"a work factor of 19": greedy, "2 MiB": make([]byte, 2<<20), "nothing": nil} {
		if _, err := Unwrap(file, 1, passphrase); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a key file with %s: %v, want %v", what, err, ErrCorrupt)
		}
	}
}

func TestUnwrapContent(t *testing.T) {
	identity := newIdentity(t)
	for text, want := range map[string]error{
		"": ErrVersion,
		"holdfast master key v2\nnumber 1\nsecret x\n":             ErrVersion,
		"holdfast master key v1\n":                                 ErrCorrupt,
		"holdfast master key v1\nnumber 1\n":                       ErrCorrupt,
		"holdfast master key v1\nnumber 1\nsecret AAAA\n":          ErrCorrupt,
		"holdfast master key v1\nnumber -1\nsecret " + zeros():     ErrCorrupt,
		"holdfast master key v1\nnumber 2\nsecret " + zeros():      ErrCorrupt,
		"holdfast master key v1\nnumber 1\nsecret " + zeros():      nil,
		"holdfast master key v1\nnumber 1\nsecret " + zeros()[:40]: ErrCorrupt,
	} {
		var file bytes.Buffer
		w, err := age.Encrypt(&file, identity.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		if _, err := Unwrap(file.Bytes(), 1, identity); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func zeros() string { return strings.Repeat("A", 43) + "=\n" }

func TestIdentitiesDoNotShowInErrors(t *testing.T) {
	secret := newIdentity(t).String()
	_, err := ParseIdentities(secret + "x")
	if err == nil || strings.Contains(err.Error(), secret[20:40]) {
		t.Errorf("a mistyped identity: %v", err)
	}
}

func TestRotation(t *testing.T) {
	ring := ringOf(t, NewKey(4))
	old := sealAll(t, ring.Newest(), name, []byte("old"))
	key, rotated, err := ring.Rotate()
	if err != nil || key.Number() != 5 || rotated.Newest() != key {
		t.Fatalf("after key 4 comes %d: %v", key.Number(), err)
	}
	if got, err := openAll(old, rotated, name); err != nil || string(got) != "old" {
		t.Errorf("what the old key sealed: %q, %v", got, err)
	}
	fresh := sealAll(t, rotated.Newest(), name, []byte("new"))
	if _, err := openAll(fresh, ring, name); !errors.Is(err, ErrNoKey) {
		t.Errorf("the ring before the rotation: %v, want %v", err, ErrNoKey)
	}
	if _, err := NewRing(); !errors.Is(err, ErrNoKey) {
		t.Errorf("a ring of no key: %v", err)
	}
	if _, err := NewRing(key, NewKey(key.Number())); err == nil {
		t.Error("a ring takes two keys of one number")
	}
}

func TestKeyNames(t *testing.T) {
	for _, n := range []uint32{1, 10, 1<<32 - 1} {
		if got, ok := ParseKeyName(KeyName(n)); !ok || got != n {
			t.Errorf("%s is key %d, %v", KeyName(n), got, ok)
		}
	}
	for _, bad := range []string{"", "keys/.age", "keys/0.age", "keys/01.age", "keys/+1.age", "keys/-1.age", "keys/4294967296.age", "keys/1", "1.age", "keys/1.age.age", "x/keys/1.age"} {
		if n, ok := ParseKeyName(bad); ok {
			t.Errorf("%q is key %d", bad, n)
		}
	}
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestUnwrapped: a key is unwrapped once, and only by an identity that fits.
func TestUnwrapped(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := NewKey(3)
	wrapped, err := Wrap(key, own.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	var u Unwrapped
	if _, err := u.Unwrap(wrapped, 3, other); !errors.Is(err, ErrLocked) {
		t.Errorf("with another identity: %v", err)
	}
	for range 2 {
		if got, err := u.Unwrap(wrapped, 3, own); err != nil || got != key {
			t.Error(err)
		}
	}
	if got, err := u.Unwrap(wrapped, 3); err != nil || got != key {
		t.Errorf("it is not kept: %v", err)
	}
	if _, err := u.Unwrap(wrapped, 4, own); !errors.Is(err, ErrCorrupt) {
		t.Errorf("below another number: %v", err)
	}
}
