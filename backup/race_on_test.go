//go:build race

package backup

// raceDetector reports that memory is several times the normal amount.
const raceDetector = true
