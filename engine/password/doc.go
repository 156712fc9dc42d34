// Package password holds the one rule for passwords that people choose, for their
// accounts and for databases: at least [Min] characters, and not easy to guess. The rule
// does not apply to generated passwords or to those chosen before it existed.
//
// How hard a password is to guess is estimated in bits: the logarithm of the number of
// guesses by an attacker that tries commonly used passwords, runs, keyboard patterns and
// repetitions first. The estimate is the cheapest way to compose the password from such
// pieces. Nothing is looked up online.
//
// common.txt.gz lists about 49,000 commonly used passwords, most common first, one per
// line in lower case. It is passwords.json of the npm package
// @zxcvbn-ts/language-common 4.1.3, under the licence in common.LICENSE.
package password
