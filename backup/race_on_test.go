//go:build race

package backup

// raceDetector says that memory is several times what it is without.
const raceDetector = true
