package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// The parameters of argon2id from OWASP's password storage cheat sheet: 19 MiB, two
// passes, one lane.
const (
	argonMemory  = 19 * 1024
	argonPasses  = 2
	argonLanes   = 1
	argonSaltLen = 16
	argonKeyLen  = 32
)

// hasher hashes people's passwords, few at a time: each hash takes tens of
// milliseconds and 19 MiB by design, and an unknown client can cause one.
type hasher struct {
	unknown, known *passwordQueue
	// decoy returns the hash of a random password. Verifying against it
	// takes the time of an account that exists.
	decoy func() string
}

func newHasher() *hasher {
	slots, ofUnknown := make(chan struct{}, parallelHashes), make(chan struct{}, unknownHashes)
	p := &hasher{
		unknown: newPasswordQueue(unknownSignIns, ofUnknown, slots),
		known:   newPasswordQueue(knownSignIns, slots),
	}
	p.decoy = sync.OnceValue(func() string {
		random := core.RandomBytes()
		return p.hash(model.NewSecret(string(random[:])))
	})
	return p
}

// hash returns the hash in the PHC string format. The caller has checked the password
// against the rule.
func (p *hasher) hash(password model.Secret) string {
	salt := make([]byte, argonSaltLen)
	_, _ = rand.Read(salt)
	var key []byte
	p.known.hashing(func() {
		key = argon2.IDKey([]byte(password.Reveal()), salt, argonPasses, argonMemory, argonLanes, argonKeyLen)
	})
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemory, argonPasses, argonLanes, encode(salt), encode(key))
}

// verify reports whether password matches hash. It takes as long if hash is "", for an
// account without a password or no account. A known client does not wait for unknown
// ones.
func (p *hasher) verify(known bool, password model.Secret, hash string) (bool, error) {
	exists := hash != ""
	if !exists {
		hash = p.decoy()
	}
	memory, passes, lanes, salt, want, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	queue := p.unknown
	if known {
		queue = p.known
	}
	var got []byte
	queue.hashing(func() {
		got = argon2.IDKey([]byte(password.Reveal()), salt, passes, memory, lanes, uint32(len(want)))
	})
	return subtle.ConstantTimeCompare(got, want) == 1 && exists, nil
}

// errPasswordHash reports an unreadable stored hash.
var errPasswordHash = errors.New("the stored hash of a password is damaged")

// parseHash parses a result of hash, including its parameters.
func parseHash(text string) (memory, passes uint32, lanes uint8, salt, key []byte, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return 0, 0, 0, nil, nil, errPasswordHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil {
		return 0, 0, 0, nil, nil, errPasswordHash
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	key, keyErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || keyErr != nil || len(key) == 0 || passes == 0 || lanes == 0 {
		return 0, 0, 0, nil, nil, errPasswordHash
	}
	return memory, passes, lanes, salt, key, nil
}
