package password

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/engine/model"
)

// The limits on the length of a chosen password, in characters.
const (
	Min         = 12
	MaxPerson   = 256
	MaxDatabase = 128
)

// leastBits is the minimum cost of guessing a chosen password: more than a hundred million
// guesses.
const leastBits = 28

// ForPerson checks a password that a person chooses for an account. about lists what an
// attacker who knows the person tries first, such as the e-mail address.
func ForPerson(field string, password model.Secret, about ...string) error {
	if err := length(field, password, MaxPerson); err != nil {
		return err
	}
	return guessable(field, password, "use several unrelated words, or let a password manager generate one", about)
}

// ForDatabase checks a password that a client chooses for a database. about lists what an
// attacker who knows the database tries first, such as its name.
func ForDatabase(field string, password model.Secret, about ...string) error {
	if err := length(field, password, MaxDatabase); err != nil {
		return err
	}
	// PostgreSQL refuses invalid UTF-8, whose replacement character is printable.
	text := password.Reveal()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return model.Invalid(field, "must have printable characters only")
	}
	return guessable(field, password, "use another, or leave it out for a generated one", about)
}

// ForImport checks the password that an import would keep from its source.
func ForImport(field string, password model.Secret, about ...string) error {
	if ForDatabase(field, password, about...) == nil {
		return nil
	}
	return model.Invalid(field, "the source's password cannot be kept: a password needs %d to %d printable characters and must not be easy to guess; "+
		"leave %s out, and give another password or none for a generated one", Min, MaxDatabase, field)
}

func length(field string, password model.Secret, most int) error {
	if n := utf8.RuneCountInString(password.Reveal()); n < Min || n > most {
		return model.Invalid(field, "must have %d to %d characters", Min, most)
	}
	return nil
}

func guessable(field string, password model.Secret, remedy string, about []string) error {
	if bits(password.Reveal(), about) >= leastBits {
		return nil
	}
	return model.Invalid(field, "is easy to guess: it is commonly used, or made of common words, names and patterns; %s", remedy)
}
