package backup

import (
	"fmt"
	"os"

	"holdfast/internal/pgcontrol"
)

// StandbySettings returns a data directory's values of the settings that must not be smaller on a standby
// (CheckRequiredParameterValues).
func StandbySettings(dir string) (map[string]int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the settings of a backup's server: %w", err)
	}
	defer root.Close()
	control, err := readControl(root)
	if err == nil {
		var found map[string]int
		if found, err = pgcontrol.Settings(control); err == nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("read the settings of a backup's server: %w", err)
}
