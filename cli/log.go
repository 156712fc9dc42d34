package cli

import (
	"fmt"
	"io"
	"log/slog"
)

// newLog returns the appliance's logger.
func newLog(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{fmt.Errorf("log-level: %q is none of debug, info, warn and error", level)}
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}
