package model

// OffsiteState says what the copy of the appliance in a store elsewhere does.
type OffsiteState string

// The states of the copy.
const (
	OffsiteOff      OffsiteState = "off"      // no store is configured
	OffsiteStarting OffsiteState = "starting" // the first checkpoint of a run is not stored yet
	// OffsiteRecovering: the files of some databases are still in the store alone.
	OffsiteRecovering OffsiteState = "recovering"
	OffsiteCopying    OffsiteState = "copying"
	OffsiteFailing    OffsiteState = "failing" // the store does not take anything; it is tried again
	OffsiteFenced     OffsiteState = "fenced"  // another machine has taken over; this one is read-only
)

// OffsiteSecrets stands for the secrets of the appliance where others are named by a database's id.
const OffsiteSecrets = "secrets"

// NewOffsiteCopy is what the operator does about a damaged copy.
const NewOffsiteCopy = "for a new copy, prepare another prefix with `holdfast offsite init`, and start with that as --offsite"

// OffsiteDamage says what a recovery brings back from a damaged copy, and what the operator does about it.
func OffsiteDamage(recoverable bool) string {
	rest := "Nothing can be recovered from it."
	if recoverable {
		rest = "A recovery passes over what is damaged and brings back everything else."
	}
	return rest + " The operator can run `holdfast offsite verify`, which names all damage; " + NewOffsiteCopy + "."
}
