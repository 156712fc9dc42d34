// Package password holds the one rule for passwords that people choose, for
// their accounts and for databases: at least [Min] characters, and not easy to
// guess. Generated passwords, and those chosen before the rule, do not pass
// through it.
//
// How easy a password is to guess is estimated in bits: the logarithm of the
// number of guesses of an attacker that tries commonly used passwords, runs,
// keyboard patterns and repetitions first. The estimate is the cheapest way to
// spell the password from such pieces. Nothing is looked up online.
//
// common.txt.gz lists about 49,000 commonly used passwords, the most common
// first, one a line in lower case. It is passwords.json of the npm package
// @zxcvbn-ts/language-common 4.1.3, under the licence in common.LICENSE.
package password
