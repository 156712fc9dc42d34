package sealed

import (
	"crypto/sha256"
	"runtime/debug"
	"sync"

	"filippo.io/age"
)

// Unwrapped keeps the master keys that were unwrapped, because a passphrase takes half a second and 128 MiB each time. It
// gives that memory back to the system at once. Its zero value is empty; it is safe for concurrent use.
type Unwrapped struct {
	mu   sync.Mutex
	keys map[[sha256.Size]byte]Key // by the hash of the wrapped key
}

// Unwrap is the function Unwrap for a key that may have been unwrapped before, with the same identities.
func (u *Unwrapped) Unwrap(wrapped []byte, number uint32, identities ...age.Identity) (Key, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name := sha256.Sum256(wrapped)
	if key, ok := u.keys[name]; ok && key.number == number {
		return key, nil
	}
	key, err := Unwrap(wrapped, number, identities...)
	debug.FreeOSMemory()
	if err != nil {
		return Key{}, err
	}
	if u.keys == nil {
		u.keys = map[[sha256.Size]byte]Key{}
	}
	u.keys[name] = key
	return key, nil
}
