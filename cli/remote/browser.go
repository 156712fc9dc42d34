package remote

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// openBrowser opens a web page in the user's browser and does not wait for it.
// It fails if there is neither BROWSER nor a display.
func openBrowser(page string) error {
	program, args := browser()
	if program == "" {
		return errors.New("there is no browser here")
	}
	cmd := exec.Command(program, append(args, page)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// browser returns the system's command to open a page. BROWSER takes
// precedence, as in most programs.
func browser() (string, []string) {
	if program := os.Getenv("BROWSER"); program != "" {
		return program, nil
	}
	switch runtime.GOOS {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return "", nil
		}
		return "xdg-open", nil
	}
}
