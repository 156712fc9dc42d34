package databases

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/engine/model"
)

func TestFitSettings(t *testing.T) {
	t.Parallel()
	const gb = 1 << 30
	bounds := map[string][2]int{ // in megabytes
		"shared_buffers":       {32, 256},
		"effective_cache_size": {128, 64 * 1024},
		"work_mem":             {4, 64},
		"maintenance_work_mem": {32, 512},
		"temp_file_limit":      {1024, 1024 * 1024},
	}
	for _, memory := range []int64{0, 1, gb / 8, gb / 2, gb, 4 * gb, 24 * gb, 512 * gb, 1 << 62} {
		for _, dbs := range []int{0, 1, 8, 50, 1000, 1 << 20} {
			settings := fitSettings(memory, 0, dbs)
			if len(settings) != len(bounds) {
				t.Errorf("%d settings: %v", len(settings), settings)
			}
			for name, b := range bounds {
				n, err := strconv.Atoi(strings.TrimSuffix(settings[name], "MB"))
				if err != nil || n < b[0] || n > b[1] {
					t.Errorf("%d bytes, %d databases: %s = %s is outside %dMB to %dMB", memory, dbs, name, settings[name], b[0], b[1])
				}
			}
		}
	}
	// All shared buffers together stay within their share if the machine has enough
	// memory for each database's minimum.
	for _, dbs := range []int{8, 50, 100} {
		const memory = 64 * gb
		n, err := strconv.ParseInt(strings.TrimSuffix(fitSettings(memory, 0, dbs)["shared_buffers"], "MB"), 10, 64)
		if err != nil || n<<20*int64(dbs) > memory/bufferShare {
			t.Errorf("%d databases take %d MB each of %d GB", dbs, n, memory>>30)
		}
	}
	want := map[string]string{
		"shared_buffers": "128MB", "effective_cache_size": "2048MB", "work_mem": "4MB", "maintenance_work_mem": "32MB",
		"temp_file_limit": "25600MB",
	}
	if got := fitSettings(4*gb, 100*gb, 3); !maps.Equal(got, want) {
		t.Errorf("4 GB and 3 databases: %v", got)
	}
}

func TestFitConnections(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]string{0: "50", 2 << 30: "50", 77 * 72 << 20: "77", 8 << 30: "105", 1 << 62: "105"} {
		if got := fitConnections(memory); got != want {
			t.Errorf("%d bytes: %s connections, not %s", memory, got, want)
		}
	}
}

// A server that runs keeps what it was started with, so that it is not restarted.
func TestKeepDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := "max_connections = '190'\nshared_buffers = '48MB'\nwork_mem = '5MB'\nport = '5432'\n"
	if err := os.WriteFile(filepath.Join(dir, "postgresql.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	fitted := func() map[string]string {
		return map[string]string{"max_connections": "105", "shared_buffers": "64MB", "work_mem": "8MB"}
	}
	db := model.Database{Settings: map[string]string{"work_mem": "8MB"}}
	settings := fitted()
	if keepDefaults(settings, db, dir); !maps.Equal(settings, fitted()) {
		t.Errorf("of a server that was shut down: %v", settings)
	}
	if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keepDefaults(settings, db, dir)
	if want := map[string]string{"max_connections": "70", "shared_buffers": "48MB", "work_mem": "8MB"}; !maps.Equal(settings, want) {
		t.Errorf("of a server that runs: %v, not %v", settings, want)
	}
	db.Settings["max_connections"], settings["max_connections"] = "110", "110"
	if keepDefaults(settings, db, dir); settings["max_connections"] != "110" {
		t.Errorf("max_connections=110 became %s", settings["max_connections"])
	}
}
