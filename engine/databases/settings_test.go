package databases

import (
	"maps"
	"strconv"
	"strings"
	"testing"
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
