package durable

import "testing"

func TestSyncfsReports(t *testing.T) {
	for release, want := range map[string]bool{
		"4.18.0-553.el8_10.x86_64": false, "5.4.0-150-generic": false, "5.7.19": false, "5.8": true, "5.10.0-30-amd64": true,
		"6.1.0": true, "10.0-rc1": true, "": false, "five": false,
	} {
		if got := syncfsReports(release); got != want {
			t.Errorf("Linux %q reports: %t", release, got)
		}
	}
}
