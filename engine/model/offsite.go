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

// OffsiteStates returns every state.
func OffsiteStates() []OffsiteState {
	return []OffsiteState{OffsiteOff, OffsiteStarting, OffsiteRecovering, OffsiteCopying, OffsiteFailing, OffsiteFenced}
}
